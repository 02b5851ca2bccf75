"""The U-matrix: how far each cell's prototype is from those of its neighbours; dark ridges part clusters."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.bars import shade_bar
from fairtune.report.maps.cells import cell_width, draw_cells, map_figure, write_in
from fairtune.report.maps.colours import ink_on
from fairtune.report.maps.label_map import letters_of

WIDTH = 6.0


def u_matrix(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, WIDTH, beside=0.9)
    axes = figure.subplots()
    draw_u_matrix(figure, axes, record, cell_width(record.grid, WIDTH))
    axes.set_title(f"U-matrix, {title}; letters are classes", loc="left")
    return figure


def draw_u_matrix(figure: Figure, axes: Axes, record: MapRecord, cell: float) -> None:
    """Args:
    cell: width of a cell in points.
    """
    heights = record.u_matrix.astype(np.float64)
    top = float(heights.max(initial=0.0))
    shades = ScalarMappable(Normalize(0, top or 1.0), matplotlib.colormaps["Greys"])
    colours = shades.to_rgba(heights)
    draw_cells(axes, record.grid, colours, line=0.2)
    write_in(axes, record.grid, letters_of(record), ink_on(colours), cell, size=0.36)
    shade_bar(figure, axes, shades, "mean distance to the neighbours' prototypes")
