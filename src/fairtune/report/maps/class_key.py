"""Keys beside maps: the classes with their letters and, where colours fade, how reliable a faint cell is."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.cells import EMPTY, HATCH
from fairtune.report.maps.colours import class_colours, class_letters, faded, strength

LONGEST = 24
COLUMNS = 3
MOST_BARS = 5


def key_rows(record: MapRecord) -> int:
    """Lines that the key of classes takes."""
    return -(-(len(record.classes) + 1) // COLUMNS)


def class_key(figure: Figure, record: MapRecord, hatched: bool = True) -> None:
    """Below the map: a patch and a letter a class, and what an empty cell looks like."""
    colours, letters = class_colours(len(record.classes)), class_letters(record.classes)
    handles = [
        Patch(facecolor=colour, edgecolor="none", label=f"{letter} = {_short(name)}")
        for colour, letter, name in zip(colours, letters, record.classes, strict=True)
    ]
    face, hatch = ("white", "////") if hatched else (EMPTY, None)
    handles.append(Patch(edgecolor=HATCH, label="no example falls here", facecolor=face, hatch=hatch))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(COLUMNS, len(handles)), frameon=False, fontsize=8.5
    )


def reliability_key(axes: Axes, record: MapRecord) -> None:
    """How strong a class's colour is from chance to full agreement, with a line at the threshold; of many classes a few."""
    classes, bars = len(record.classes), min(MOST_BARS, len(record.classes))
    levels = np.linspace(1, 1 / max(2, classes), 60)
    shown = faded(class_colours(bars)[None, :, :], strength(levels, classes)[:, None].repeat(bars, axis=1))
    axes.imshow(shown, aspect="auto", extent=(-0.5, bars - 0.5, 100 * levels[-1], 100), interpolation="nearest")
    axes.set_xticks(range(bars), class_letters(record.classes)[:bars], fontsize=7.5)
    axes.set_ylabel("reliability (%)", fontsize=8)
    axes.yaxis.set_label_position("right")
    axes.tick_params(left=False, labelleft=False, right=True, labelright=True, bottom=False, labelsize=7.5)
    if record.figures.threshold is not None:
        axes.axhline(100 * record.figures.threshold, color="#111111", linewidth=1.2)
    axes.spines[:].set_visible(False)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
