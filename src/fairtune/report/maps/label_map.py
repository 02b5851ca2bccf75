"""The label map: the class that most examples on each cell have."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.cells import cell_width, draw_cells, map_figure, write_in
from fairtune.report.maps.class_key import class_key, key_rows
from fairtune.report.maps.colours import class_colours, class_letters, ink_on

WIDTH = 6.0


def label_map(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, WIDTH, above=0.55 + 0.2 * key_rows(record))
    axes = figure.subplots()
    draw_label_map(axes, record, cell_width(record.grid, WIDTH))
    axes.set_title(f"Class of each cell, {title}", loc="left")
    class_key(figure, record)
    return figure


def draw_label_map(axes: Axes, record: MapRecord, cell: float) -> None:
    """Args:
    cell: width of a cell in points.
    """
    colours = class_colours(len(record.classes))[record.labels]
    draw_cells(axes, record.grid, colours, record.labels < 0)
    write_in(axes, record.grid, letters_of(record), ink_on(colours), cell, size=0.45)


def letters_of(record: MapRecord) -> list[str]:
    """Each cell's letter; nothing for a cell without a label."""
    letters = [*class_letters(record.classes), ""]
    return [letters[label] for label in record.labels]
