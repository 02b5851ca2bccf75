"""The head of a report: what was studied, what went wrong, and a finding for every arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.core.markdown import items, plain
from fairtune.report.content import Evidence, Header, ReportContent, tokenizer_text
from fairtune.report.section import ReportSection
from fairtune.report.sections.findings.sentences import Finding, findings
from fairtune.report.sections.trouble import gather_troubles


@dataclass(frozen=True)
class ReportHead:
    """What a report begins with.

    Args:
        troubles: how many runs failed, are not finished or were left out, in words; those that there are.
        contaminations: that the study allows.
    """

    findings: tuple[Finding, ...]
    troubles: dict[str, int]
    contaminations: tuple[str, ...]


def gather(evidence: Evidence) -> ReportHead:
    troubles = gather_troubles(evidence)
    counts = {
        "failed": len(troubles.failures),
        "not finished": len(troubles.unfinished),
        "left out": len(troubles.exclusions),
    }
    return ReportHead(
        findings(evidence.header, evidence.rows, evidence.like_with_like),
        {trouble: count for trouble, count in counts.items() if count},
        tuple(evidence.results.plan.get("notes") or ()),
    )


def markdown(head: ReportHead, report: ReportContent) -> Iterator[str]:
    yield from _title(report.header)
    yield from items(f"**{plain(f.arm)}**: {plain(' '.join((f.text, *f.cautions)))}" for f in head.findings)


def _title(header: Header) -> Iterator[str]:
    yield f"# {plain(header.study)}"
    yield ""
    runs = ", ".join(f"{count} {status}" for status, count in header.statuses.items())
    seeds = ", ".join(map(str, header.seeds))
    scratch = ", trained from scratch" if header.from_scratch else ""
    tokenizer = f" · tokenizer {tokenizer_text(header.text)}" if header.text is not None else ""
    yield plain(
        f"{header.task} · {header.model}{scratch}{tokenizer} · {header.metric_title} · "
        f"seeds {seeds} · runs: {runs} · plan {header.plan} · "
        f"fairtune {header.fairtune}"
    )
    yield ""


SECTION = ReportSection(
    __name__,
    gather,
    markdown,
    names=lambda *_: {"tokenizer_text": tokenizer_text},
    json=lambda head: {"findings": head.findings},
)
