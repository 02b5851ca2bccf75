"""All pictures of one run's maps, each with its name and what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairtune.analysis.maps import MapRecord
from fairtune.report.canvas import drawing
from fairtune.report.maps.animation import animated
from fairtune.report.maps.combined_map import combined_map
from fairtune.report.maps.histograms import activation_histograms
from fairtune.report.maps.images import png
from fairtune.report.maps.label_map import label_map
from fairtune.report.maps.over_epochs import over_epochs
from fairtune.report.maps.planes import component_planes
from fairtune.report.maps.pruning_curve import pruning_curve
from fairtune.report.maps.reliability_map import reliability_map
from fairtune.report.maps.section import RunMaps
from fairtune.report.maps.u_matrix import u_matrix
from fairtune.report.maps.use_curve import use_curve
from fairtune.report.maps.words import when


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
    def kind(self) -> str:
        return self.name.rpartition(".")[2]


def pictures(run: RunMaps, records: Sequence[MapRecord], metric: str) -> Iterator[Picture]:
    """Every picture of a run; the maps are those of its last labelling pass.

    Args:
        metric: the study's, for the pruning curve.
    """
    last, passes = records[-1], [record.figures for record in records]
    name, places = f"{run.arm} seed {run.seed}", {run.arm: 1}
    title = f"{name}, {when(last.figures, passes)}"
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
