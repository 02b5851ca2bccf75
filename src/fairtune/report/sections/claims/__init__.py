"""Claims of the study file: each with its answer, the figures behind it, and when it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairtune.analysis.claim_answer import ClaimFigures
from fairtune.analysis.study_claims import AnsweredClaim, study_claims
from fairtune.core.markdown import code, heading, items, plain, prose
from fairtune.report.content import Evidence, ReportContent
from fairtune.report.section import ReportSection

READING = (
    "A claim is answered by the comparison that verdicts are made of: with the arm that has the same settings, corrected with all "
    "others. Supported: the whole interval reaches what was claimed. Contradicted: the whole interval is short of it, or the "
    "opposite is shown. Not separable: neither. Implausible: beyond what counted operations allow. Claims that were taken out "
    "after results were known are answered all the same."
)

MOST_SHOWN = 10
"""Claims in the head of a report; the section has them all."""


@dataclass(frozen=True)
class ClaimRecord:
    """A claim of the study file, answered.

    Args:
        claim: as the study file has it.
        answer: supported, contradicted, not separable, implausible or not yet run.
        summary: why this word, by which figures, and when the claim was written.
        found: the figures in words; empty where there are none.
        needed: what it would take to settle it.
        notes: what to mind about the runs.
        written: since when it is on record; null where nothing says so.
        known: results that were on record then.
        late: it was written after results were known, or nothing says when.
        taken_out: when it was taken out after results were known; null while it is in force.
        mark: when it was written, in a sentence.
        signature: what was compared under which plan.
        command: that gives the figures.
    """

    claim: dict[str, Any]
    text: str
    answer: str
    summary: str
    reason: str
    figures: ClaimFigures | None
    found: str
    needed: str
    notes: tuple[str, ...]
    written: str | None
    known: int
    late: bool
    taken_out: str | None
    mark: str
    signature: str
    command: str


def gather(evidence: Evidence) -> tuple[ClaimRecord, ...] | None:
    return tuple(map(claim_record, study_claims(evidence.results))) or None


def claim_record(one: AnsweredClaim) -> ClaimRecord:
    answer, written = one.answer, one.written
    return ClaimRecord(
        claim=answer.claim.model_dump(mode="json", exclude_defaults=True),
        text=str(answer.claim),
        answer=answer.word,
        summary=one.summary,
        reason=answer.reason,
        figures=answer.figures,
        found="" if answer.figures is None else str(answer.figures),
        needed=answer.needed,
        notes=answer.notes,
        written=written.written,
        known=written.known,
        late=written.late,
        taken_out=written.taken_out,
        mark=one.mark,
        signature=answer.signature,
        command=answer.command,
    )


@dataclass(frozen=True)
class HeadClaims:
    """The claims that the head of a report shows, and how many more the section has."""

    shown: tuple[ClaimRecord, ...]
    more: int


def head_claims(report: ReportContent) -> HeadClaims | None:
    """None where the study claims nothing."""
    records = report.sections.get("claims")
    return HeadClaims(records[:MOST_SHOWN], max(0, len(records) - MOST_SHOWN)) if records else None


def claim_lines(head: HeadClaims) -> list[str]:
    """One line per claim, for the head of a report."""
    lines = [f"**{one.answer}**: {plain(one.text)}. {prose(one.summary)}" for one in head.shown]
    return items([*lines, *([f"and {head.more} more, below"] if head.more else [])])


def markdown(records: tuple[ClaimRecord, ...], _: ReportContent) -> Iterator[str]:
    yield from heading("Claims")
    for record in records:
        yield from (f"**{plain(record.text)}**: {record.answer}", "")
        yield from items(_details(record))
        yield ""
    yield prose(READING)


def _details(record: ClaimRecord) -> Iterator[str]:
    yield prose(record.reason)
    if record.found:
        yield f"found: {prose(record.found)}"
    if record.needed:
        yield f"to settle it: {prose(record.needed)}"
    yield prose(record.mark)
    yield from map(prose, record.notes)
    if record.signature:
        yield f"{code(record.command)}, {code(record.signature)}"


SECTION = ReportSection(__name__, gather, markdown, names=lambda *_: {"claims_reading": READING}, folded=True)
