"""Verdicts: one row per arm, with what it is compared with and what that supports; each finding in full below."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtune.analysis.study_verdict import Finding
from fairtune.core.markdown import heading
from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.figures.palette import VERDICTS
from fairtune.report.section import ReportSection
from fairtune.report.sections.results.markdown import result_lines, text_result_lines

Rows = tuple[ArmRow, ...]
ORDER = tuple(VERDICTS)
"""In which a table that is sorted by verdicts has them."""


def names(rows: Rows, report: ReportContent) -> dict[str, Any]:
    head = report.sections.get("findings")
    findings: tuple[Finding, ...] = head.findings if head is not None else ()
    return {
        "findings": findings,
        "rank": lambda word: ORDER.index(word) if word in ORDER else len(ORDER),
        "several_seeds": any(len(row.scores) > 1 for row in rows),
    }


def markdown(rows: Rows, report: ReportContent) -> Iterator[str]:
    yield from heading("Results")
    yield from (result_lines if report.header.text is None else text_result_lines)(report.header, rows)


SECTION = ReportSection(__name__, lambda evidence: evidence.rows, markdown, names, json=lambda rows: {"rows": rows})
