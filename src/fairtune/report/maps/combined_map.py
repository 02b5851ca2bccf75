"""Class, reliability and number of examples of every cell in one map."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.maps.cells import cell_width, draw_cells, map_figure, ring, short_count, write_in
from fairtune.report.maps.class_key import class_key, key_rows, reliability_key
from fairtune.report.maps.colours import Colours, class_colours, faded, ink_on, strength
from fairtune.report.maps.label_map import letters_of
from fairtune.report.maps.words import threshold_text

WIDTH, KEY = 6.4, 0.95


def combined_map(record: MapRecord, title: str) -> Figure:
    """Colour and letter are the class, the colour's strength the reliability, the number is of examples."""
    figure = map_figure(record.grid, WIDTH, beside=KEY, above=0.55 + 0.2 * key_rows(record))
    axes, key = figure.subplots(1, 2, width_ratios=(WIDTH, KEY / 2.4))
    draw_combined(axes, record, cell_width(record.grid, WIDTH))
    axes.set_title(f"{title}; ringed: at least {threshold_text(record.figures)} reliable", loc="left")
    reliability_key(key, record)
    class_key(figure, record)
    return figure


def draw_combined(axes: Axes, record: MapRecord, cell: float, small: bool = False) -> None:
    """Args:
    cell: width of a cell in points.
    small: without numbers, letters and hatching.
    """
    colours = cell_colours(record)
    draw_cells(axes, record.grid, colours, record.labels < 0, line=0.15 if small else 0.5, hatched=not small)
    if small:
        return
    if record.figures.threshold is not None:
        ring(axes, record.grid, (record.labels >= 0) & (record.reliability >= record.figures.threshold - 1e-6))
    inks = ink_on(colours)
    counts = [short_count(int(hits)) if hits else "" for hits in record.hits]
    write_in(axes, record.grid, letters_of(record), inks, cell, size=0.3, down=-0.17)
    write_in(axes, record.grid, counts, inks, cell, size=0.3, down=0.2)


def cell_colours(record: MapRecord) -> Colours:
    classes = len(record.classes)
    return faded(class_colours(classes)[record.labels], strength(record.reliability, classes))
