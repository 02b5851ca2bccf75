"""The head of a report: what was studied and planned, what to mind, and a finding for every arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairtune.analysis.study_verdict import Finding
from fairtune.core.cautions import Caution
from fairtune.core.markdown import folded, items, plain, prose
from fairtune.report.content import Evidence, ReportContent, tokenizer_text
from fairtune.report.section import ReportSection
from fairtune.report.sections.claims import claim_lines, head_claims
from fairtune.report.sections.findings.markdown import design_line, title_lines
from fairtune.report.sections.trouble import gather_troubles


@dataclass(frozen=True)
class ReportHead:
    """What a report begins with.

    Args:
        troubles: how many runs failed, are not finished or were left out, in words; those that there are.
        contaminations: that the study allows.
        design: what was planned, when, and what was changed since.
        cautions: what to mind before anything is believed, the gravest first.
        opening: what the evidence supports, in a sentence, and what to mind about it in another.
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


def grade_text(caution: Caution) -> str:
    return f"{caution.grade.capitalize()}, forced" if caution.forced else caution.grade.capitalize()


def markdown(head: ReportHead, report: ReportContent) -> Iterator[str]:
    yield from title_lines(report.header)
    yield prose(head.opening)
    yield ""
    if claims := head_claims(report):
        yield from (*claim_lines(claims), "")
    if head.cautions:
        yield from items(f"**{grade_text(caution)}**: {prose(str(caution))}" for caution in head.cautions)
        yield ""
    findings = items(f"**{plain(f.arm)}**: {prose(' '.join((f.text, *f.cautions)))}" for f in head.findings)
    yield from folded("What was planned, and every arm in a sentence", [*map(design_line, head.design), "", *findings])


SECTION = ReportSection(
    __name__,
    gather,
    markdown,
    names=lambda _, report: {
        "tokenizer_text": tokenizer_text,
        "grade_text": grade_text,
        "claims": head_claims(report),
    },
    json=lambda head: {name: getattr(head, name) for name in ("opening", "design", "cautions", "findings")},
)
