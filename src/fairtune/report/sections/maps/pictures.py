"""All pictures of maps: those of one run as files with captions, and those of a report's section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.figures.canvas import address, drawing, new_figure, png, reduced, svg_text
from fairtune.report.figures.widths import fitting
from fairtune.report.sections.maps.cell_maps import (
    animated,
    combined_map,
    draw_reliability,
    draw_u_matrix,
    label_map,
    over_epochs,
    reliability_map,
    u_matrix,
)
from fairtune.report.sections.maps.cells import cell_width, extent
from fairtune.report.sections.maps.content import (
    MapsSection,
    RunMaps,
    ShownMaps,
    pass_label,
)
from fairtune.report.sections.maps.curves import pruning_curve, use_curve
from fairtune.report.sections.maps.units import activation_histograms, component_planes


@dataclass(frozen=True)
class Picture:
    """A picture as a file.

    Args:
        name: of the file.
        caption: how to read it, in a sentence.
    """

    name: str
    caption: str
    content: bytes

    @property
    def format(self) -> str:
        return self.name.rpartition(".")[2]


def pictures(run: RunMaps, records: Sequence[MapRecord], metric: str) -> Iterator[Picture]:
    """Every picture of a run; the maps are those of its last labelling pass.

    Args:
        metric: the study's, for the pruning curve.
    """
    last, passes = records[-1], [record.figures for record in records]
    name, places = f"{run.arm} seed {run.seed}", {run.arm: 1}
    title = f"{name}, {pass_label(last.figures, passes)}"
    with drawing(ink="black", page="white"):
        yield Picture("combined.png", COMBINED, png(combined_map(last, title)))
        yield Picture(
            "labels.png", "The class that most training examples on a cell have.", png(label_map(last, title))
        )
        yield Picture("reliability.png", RELIABILITY, png(reliability_map(last, title)))
        yield Picture("u-matrix.png", U_MATRIX, png(u_matrix(last, title)))
        yield Picture("epochs.png", EPOCHS, png(over_epochs(records, name)))
        yield Picture("epochs.gif", "The same, one labelling pass after another.", animated(records, name))
        yield Picture("use.png", USE, png(use_curve([run], places)))
        yield Picture("pruning.png", PRUNING, png(pruning_curve([run], places, metric)))
        yield Picture("activations.png", ACTIVATIONS, png(activation_histograms(last, title)))
        yield Picture("planes.png", PLANES, png(component_planes(records, title)))


COMBINED = (
    "Colour and letter: the class that most training examples on the cell have. Strength of the colour: the share of them "
    "that have it. Number: how many examples fall on the cell. Ringed cells are reliable enough to pull."
)
RELIABILITY = "The share of a cell's training examples that have its label, in percent."
U_MATRIX = "How far a cell's prototype is from those of the cells that touch it: dark ridges part regions whose activations differ."
EPOCHS = "Class and reliability of every cell after each labelling pass; the fainter, the less reliable."
USE = "The share of training examples whose SOM error was used since the labelling pass before; 0 before cells have labels."
PRUNING = "The score on the validation split against the hidden units that were left."
ACTIVATIONS = (
    "Each row is a hidden unit: the darker, the more training examples have that activation. A unit that hardly varies "
    "says nothing about an example and can be removed."
)
PLANES = (
    "One small map a hidden unit, all on one scale: its activation in every cell's prototype. Units whose planes look alike "
    "say the same."
)


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
        runs, places = section.runs, section.places
        use = fitting(
            lambda width: svg_text(
                use_curve(runs, places, width), f"som-use-{width:.0f}", "SOM use over training by arm"
            )
        )
        pruning = None
        if section.pruned:
            title = "Validation score by hidden units left"
            pruning = fitting(
                lambda width: svg_text(pruning_curve(runs, places, metric, width), f"pruning-{width:.0f}", title)
            )
    with drawing(ink="black", page="white"):
        arms = {arm.arm: _pictures(arm.arm, arm.shown) for arm in section.arms if arm.shown is not None}
    return MapFigures(use, pruning, arms)


def map_texts(section: MapsSection, metric: str) -> dict[str, Any]:
    """The same as plain data, which can be kept."""
    return asdict(map_figures(section, metric))


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
