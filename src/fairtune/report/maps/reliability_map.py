"""The reliability map: which share of a cell's examples have its label."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.bars import shade_bar
from fairtune.report.maps.cells import cell_width, draw_cells, map_figure, write_in
from fairtune.report.maps.colours import SHADES, ink_on
from fairtune.report.maps.words import threshold_text
from fairtune.report.palette import VERMILION

WIDTH = 6.0
STEPS = (25.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 100.0)


def reliability_map(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, WIDTH, beside=0.9)
    axes = figure.subplots()
    draw_reliability(figure, axes, record, cell_width(record.grid, WIDTH))
    axes.set_title(f"Reliability of each cell (%), {title}", loc="left")
    return figure


def draw_reliability(figure: Figure, axes: Axes, record: MapRecord, cell: float) -> None:
    """Percent in each cell, and a colour bar on which the threshold is a line."""
    edges, threshold = _edges(record), record.figures.threshold
    shades = ScalarMappable(BoundaryNorm(edges, 256, clip=True), matplotlib.colormaps[SHADES])
    percent = 100 * record.reliability.astype(np.float64)
    colours = shades.to_rgba(percent)
    empty = record.labels < 0
    draw_cells(axes, record.grid, colours, empty)
    words = ["" if none else f"{value:.0f}" for value, none in zip(percent, empty, strict=True)]
    write_in(axes, record.grid, words, ink_on(colours), cell, size=0.36)
    label = f"examples with the cell's label (%); line: threshold, {threshold_text(record.figures)}"
    bar = shade_bar(figure, axes, shades, label, ticks=edges)
    if threshold is not None:
        bar.ax.axhline(100 * threshold, color=VERMILION, linewidth=2)


def _edges(record: MapRecord) -> list[float]:
    """Steps of the colours: from chance up, finer towards the top, the threshold one of them."""
    lowest = math.floor(100 / max(2, len(record.classes)))
    known = [] if record.figures.threshold is None else [100 * record.figures.threshold]
    return sorted({edge for edge in (lowest, *STEPS, *known) if edge >= lowest})
