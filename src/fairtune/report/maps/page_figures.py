"""The figures of a report's section about maps: lines as SVG, maps as small pictures inside the page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.canvas import drawing, new_figure
from fairtune.report.maps.cells import cell_width, extent
from fairtune.report.maps.combined_map import combined_map
from fairtune.report.maps.histograms import activation_histograms
from fairtune.report.maps.images import address, png, reduced
from fairtune.report.maps.label_map import label_map
from fairtune.report.maps.over_epochs import over_epochs
from fairtune.report.maps.planes import component_planes
from fairtune.report.maps.pruning_curve import pruning_curve
from fairtune.report.maps.reliability_map import draw_reliability
from fairtune.report.maps.section import MapsSection, ShownMaps
from fairtune.report.maps.u_matrix import draw_u_matrix
from fairtune.report.maps.use_curve import use_curve
from fairtune.report.svg import svg_text

DOTS, FEW_DOTS = 105, 80
"""Of an inch; few for what is looked at as a whole."""
WIDTH = 4.6
"""Of each of two maps side by side, in inches."""


@dataclass(frozen=True)
class ArmPictures:
    """Addresses that hold the pictures of one arm.

    Args:
        sides: reliability and U-matrix beside each other.
    """

    combined: str
    labels: str
    sides: str
    epochs: str
    activations: str
    planes: str


@dataclass(frozen=True)
class MapFigures:
    """Everything drawn in the section.

    Args:
        pruning: None where no run lost a unit.
    """

    use: Markup
    pruning: Markup | None
    arms: dict[str, ArmPictures]


def map_figures(section: MapsSection, metric: str) -> MapFigures:
    """Args:
    metric: the study's.
    """
    with drawing():  # SVG of our own making; matplotlib escapes the names in it
        use = svg_text(use_curve(section.runs, section.places), "som-use", "SOM use over training by arm")
        pruning = None
        if section.pruned:
            figure = pruning_curve(section.runs, section.places, metric)
            pruning = Markup(svg_text(figure, "pruning", "Validation score by hidden units left"))
    with drawing(ink="black", page="white"):
        arms = {arm.arm: _pictures(arm.arm, arm.shown) for arm in section.arms if arm.shown is not None}
    return MapFigures(Markup(use), pruning, arms)


def _pictures(arm: str, shown: ShownMaps) -> ArmPictures:
    last, name = shown.records[-1], f"{arm} seed {shown.seed}"
    title = f"{name}, {shown.when}"
    return ArmPictures(
        combined=_small(combined_map(last, title)),
        labels=_small(label_map(last, title), FEW_DOTS),
        sides=_small(sides(last)),
        epochs=_small(over_epochs(shown.records, name)),
        activations=_small(activation_histograms(last, title), FEW_DOTS),
        planes=_small(component_planes(shown.records, title), FEW_DOTS),
    )


def _small(figure: Figure, dots: int = DOTS) -> str:
    return address(reduced(png(figure, dots)))


def sides(record: MapRecord) -> Figure:
    """Reliability and U-matrix side by side."""
    left, right, top, bottom = extent(record.grid)
    figure = new_figure(2 * WIDTH + 1.8, min(WIDTH * (bottom - top) / (right - left), 2.2 * WIDTH) + 0.45)
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
    first, second = figure.subplots(1, 2)
    cell = cell_width(record.grid, WIDTH)
    draw_reliability(figure, first, record, cell)
    draw_u_matrix(figure, second, record, cell)
    first.set_title("Reliability (%)", loc="left")
    second.set_title("U-matrix; letters are classes", loc="left")
    return figure
