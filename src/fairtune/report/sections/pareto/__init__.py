"""Quality against time and memory: what each arm reaches for what it costs."""

from __future__ import annotations

from typing import Any

from fairtune.report.content import ArmRow, ReportContent
from fairtune.report.figures.widths import both_widths
from fairtune.report.section import ReportSection
from fairtune.report.sections.pareto.content import cost_panels


def names(rows: tuple[ArmRow, ...], report: ReportContent) -> dict[str, Any]:
    panels = cost_panels(report.header, rows)
    doubted = [point.arm for panel in panels for point in panel.points if point.doubted]
    return {
        "doubted": ", ".join(doubted),
        "figure": both_widths("pareto.figure:pareto_svg", report.header, panels) if panels else None,
        "was_timed": any(row.timed for row in rows),
        "timed": any(panel.name == "time" for panel in panels),
    }


SECTION = ReportSection(__name__, lambda evidence: evidence.rows, names=names, json=lambda _: {})
