"""The head of a report: what was studied and planned, what to mind, and a finding for every arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.analysis.study_verdict import Finding
from fairtune.core.cautions import Caution
from fairtune.core.markdown import items, plain
from fairtune.report.content import Evidence, Header, ReportContent, tokenizer_text
from fairtune.report.section import ReportSection
from fairtune.report.sections.trouble import gather_troubles


@dataclass(frozen=True)
class ReportHead:
    """What a report begins with.

    Args:
        troubles: how many runs failed, are not finished or were left out, in words; those that there are.
        contaminations: that the study allows.
        design: what was planned, when, and what was changed since.
        cautions: what to mind before anything is believed, the gravest first.
        opening: what the evidence supports, in a sentence.
    """

    findings: tuple[Finding, ...]
    troubles: dict[str, int]
    contaminations: tuple[str, ...]
    design: tuple[str, ...]
    cautions: tuple[Caution, ...]
    opening: str


def gather(evidence: Evidence) -> ReportHead:
    troubles = gather_troubles(evidence)
    counts = {
        "failed": len(troubles.failures),
        "not finished": len(troubles.unfinished),
        "left out": len(troubles.exclusions),
    }
    verdict = evidence.results.verdict()
    return ReportHead(
        verdict.findings,
        {trouble: count for trouble, count in counts.items() if count},
        tuple(evidence.results.plan.get("notes") or ()),
        verdict.design,
        verdict.cautions,
        verdict.opening,
    )


def markdown(head: ReportHead, report: ReportContent) -> Iterator[str]:
    yield from _title(report.header)
    yield f"**{plain(head.opening)}**"
    yield ""
    yield from map(plain_line, head.design)
    yield ""
    if head.cautions:
        yield from items(f"**{grade_text(caution)}**: {plain(str(caution))}" for caution in head.cautions)
        yield ""
    yield from items(f"**{plain(f.arm)}**: {plain(' '.join((f.text, *f.cautions)))}" for f in head.findings)


def plain_line(line: str) -> str:
    """A line of the design, which may be an item of a list."""
    return f"- {plain(line[2:])}" if line.startswith("- ") else f"{plain(line)}  "


def grade_text(caution: Caution) -> str:
    return f"{caution.grade.capitalize()}, forced" if caution.forced else caution.grade.capitalize()


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
    names=lambda *_: {"tokenizer_text": tokenizer_text, "grade_text": grade_text},
    json=lambda head: {
        "opening": head.opening,
        "design": head.design,
        "cautions": head.cautions,
        "findings": head.findings,
    },
)
