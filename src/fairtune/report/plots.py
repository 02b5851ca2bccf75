"""Figures of a study by name, for notebooks and papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from fairtune.analysis.results import Results
from fairtune.core.errors import FairtuneError, nearest, one_of, shown
from fairtune.core.printable import with_printable_texts
from fairtune.report.content import ArmRow, Header
from fairtune.report.evidence import make_evidence
from fairtune.report.figures.paper import PAGE
from fairtune.report.sections.costs import OwnTimes, own_times
from fairtune.report.sections.costs.figure import draw_bars, draw_steps
from fairtune.report.sections.curves import SECTION as CURVES
from fairtune.report.sections.curves.content import Curve
from fairtune.report.sections.curves.figure import draw_curves
from fairtune.report.sections.forest.figure import draw_forest
from fairtune.report.sections.pareto.content import cost_panels
from fairtune.report.sections.pareto.figure import draw_pareto
from fairtune.report.sections.scores.figure import draw_scores

NARROWEST, WIDEST = 2.0, 40.0
"""Inches between which a figure can be drawn."""


@dataclass(frozen=True)
class PlotData:
    """What figures are drawn of."""

    study: str
    header: Header
    rows: tuple[ArmRow, ...]
    curves: Callable[[], tuple[Curve, ...]]
    times: Callable[[], OwnTimes]

    @property
    def arms(self) -> list[str]:
        return [row.arm for row in self.rows]


def plot_data(results: Results) -> PlotData:
    """From the results; curves and times are read when one asks for them."""
    evidence = make_evidence(results)
    header, rows = with_printable_texts((evidence.header, evidence.rows))
    curves, times = lambda: CURVES.gather(evidence) or (), lambda: with_printable_texts(own_times(results))
    return PlotData(results.study, header, rows, curves, times)


def _forest(data: PlotData, width: float) -> Figure | None:
    compared = any(row.versus is not None and row.versus.low is not None for row in data.rows)
    return draw_forest(data.header, data.rows, width) if compared else None


def _scores(data: PlotData, width: float) -> Figure | None:
    return draw_scores(data.header, data.rows, width) if any(row.scores for row in data.rows) else None


def _curves(data: PlotData, width: float) -> Figure | None:
    return draw_curves(data.header, data.rows, data.curves(), width)


def _pareto(data: PlotData, width: float) -> Figure | None:
    panels = cost_panels(data.header, data.rows)
    return draw_pareto(data.header, panels, width) if panels else None


PLOTS: dict[str, Callable[[PlotData, float], Figure | None]] = {
    "forest": _forest,
    "scores": _scores,
    "curves": _curves,
    "pareto": _pareto,
    "times": lambda data, width: draw_bars(data.arms, data.times(), width),
    "steps": lambda data, width: draw_steps(data.arms, data.times(), width),
}
"""By name; None where a study has nothing of the kind."""


def draw_plot(data: PlotData, name: str, width: float = PAGE) -> Figure:
    """A figure of a study.

    Args:
        width: in inches.

    Raises:
        FairtuneError: there is no such figure, or the study has nothing to draw.
    """
    if name not in PLOTS:
        raise FairtuneError(f"plot: found {shown(name)}; there are: {one_of(PLOTS)}.{nearest(name, PLOTS)}")
    if not NARROWEST <= width <= WIDEST:
        raise FairtuneError(f"width: found {shown(width)}; a figure is {NARROWEST:g} to {WIDEST:g} inches wide.")
    figure = PLOTS[name](data, width)
    if figure is None:
        others = one_of(other for other in PLOTS if other != name)
        raise FairtuneError(f"plot: '{data.study}' has nothing for '{name}' yet; others: {others}.")
    return figure
