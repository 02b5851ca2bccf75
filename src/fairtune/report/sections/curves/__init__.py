"""Learning curves: validation score and training loss of every run over its steps. For the page only."""

from __future__ import annotations

from typing import Any

from fairtune.report.content import Evidence, ReportContent
from fairtune.report.figures.widths import both_widths
from fairtune.report.section import ReportSection
from fairtune.report.sections.curves.content import BANDS, LOSSES, Curve, learning_curve, loss_groups

Curves = tuple[Curve, ...]


def gather(evidence: Evidence) -> Curves:
    results = evidence.results
    return tuple(
        learning_curve(run, results.metric, int(planned["steps"]))
        for run, planned in zip(results.runs, results.plan["runs"], strict=True)
        if run.begun
    )


def names(curves: Curves, report: ReportContent) -> dict[str, Any]:
    drawn = any(len(curve.loss) > 1 or len(curve.score) > 1 for curve in curves)
    left_out = sum(len(arms) for _, arms in loss_groups(report.rows)[LOSSES:])
    given = (report.header, report.rows, curves)
    return {
        "figure": both_widths("curves.figure:curves_svg", *given) if drawn else None,
        "bands": BANDS,
        "left_out": left_out,
    }


SECTION = ReportSection(__name__, gather, names=names)
