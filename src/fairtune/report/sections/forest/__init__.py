"""Comparisons: the forest plot of every arm against the arm it is compared with. For the page; the table has the figures."""

from __future__ import annotations

from typing import Any

from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.section import ReportSection
from fairtune.report.sections.forest.content import make_forest


def names(rows: tuple[ArmRow, ...], report: ReportContent) -> dict[str, Any]:
    return {"plot": make_forest(report.header, rows)}


SECTION = ReportSection(__name__, lambda evidence: evidence.rows, names=names, json=lambda _: {})
