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
from fairtune.report.sections.curves import SECTION as CURVES
from fairtune.report.sections.curves.content import Curve
from fairtune.report.sections.forest.figure import draw_forest
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


def plot_data(results: Results) -> PlotData:
    """From the results; curves are read when one asks for them."""
    evidence = make_evidence(results)
    header, rows = with_printable_texts((evidence.header, evidence.rows))
    return PlotData(results.study, header, rows, lambda: CURVES.gather(evidence) or ())


Drawer = Callable[[PlotData, float], Figure | None]
PLOTS: dict[str, Drawer] = {
    "forest": lambda data, width: draw_forest(data.header, data.rows, width),
    "scores": lambda data, width: draw_scores(data.header, data.rows, width),
}
"""None where a study has nothing of the kind."""


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
