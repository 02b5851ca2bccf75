"""Comparisons: what each change is worth, plain differences to the reference, and differences between arms other than methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtune.analysis.arm_pairs import PRIMARY
from fairtune.report.content import Evidence, ReportContent, Versus
from fairtune.report.section import ReportSection
from fairtune.report.sections.comparisons import worth
from fairtune.report.sections.comparisons.markdown import audit_lines, choice_lines, raw_lines, worth_lines
from fairtune.report.sections.comparisons.worth import Worth, rank, worth_of


@dataclass(frozen=True)
class Comparisons:
    """Arms against each other.

    Args:
        ranking: arms by what they gain in their primary comparisons; empty where fewer than two are compared.
        left_out: arms of several methods against those that lack one of them.
        raw_differences: to the reference, of arms whose primary comparison is another; not verdicts.
        audit: settings, other than methods, in which arms differ from the reference.
    """

    ranking: tuple[Worth, ...]
    left_out: tuple[Worth, ...]
    raw_differences: tuple[Versus, ...]
    audit: tuple[str, ...]


def gather(evidence: Evidence) -> Comparisons:
    metric = evidence.header.metric
    return Comparisons(
        ranking=rank(
            (row.versus for row in evidence.rows if row.versus is not None and row.versus.role == PRIMARY), metric
        ),
        left_out=tuple(worth_of(versus, metric, method) for versus, method in evidence.left_out),
        raw_differences=tuple(row.raw for row in evidence.rows if row.raw is not None),
        audit=(
            *(str(difference["text"]) for difference in evidence.results.plan["differences"]),
            *choice_lines(evidence.results),
        ),
    )


def markdown(found: Comparisons, report: ReportContent) -> list[str]:
    return [
        *worth_lines(report.header, found.ranking, found.left_out),
        *raw_lines(report.header, found.raw_differences),
        *audit_lines(found.audit, report.rows),
    ]


def names(*_: object) -> dict[str, Any]:
    words = (
        worth.cost_parts,
        worth.gain_cells,
        worth.gain_heading,
        worth.left_out_text,
        worth.raw_note,
        worth.settings_text,
        worth.worth_notes,
    )
    return {**{show.__name__: show for show in words}, "raw_title": worth.RAW}


SECTION = ReportSection(__name__, gather, markdown, names, json=vars)
