"""Learning curves: validation score and training loss of every run over its steps. For the page only."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from fairtune.report.content import Evidence, ReportContent
from fairtune.report.figures.kept import kept_figure
from fairtune.report.section import ReportSection
from fairtune.report.sections.curves.content import Curve, learning_curve

Curves = tuple[Curve, ...]


def gather(evidence: Evidence) -> Curves:
    results = evidence.results
    return tuple(
        learning_curve(run, results.metric, int(planned["steps"]))
        for run, planned in zip(results.runs, results.plan["runs"], strict=True)
        if run.begun
    )


def names(curves: Curves, report: ReportContent) -> dict[str, Any]:
    drawn = any(curve.loss or curve.score for curve in curves)
    given = (report.header, report.rows, curves)
    return {"figure": Markup(kept_figure("curves.figure:curves_svg", *given)) if drawn else None}


SECTION = ReportSection(__name__, gather, names=names)
