"""Pictures of a whole map: labels, reliability, U-matrix, all in one, and the map over training as panels and as animation."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Normalize
from matplotlib.figure import Figure

from fairtune.analysis.maps import MapRecord
from fairtune.report.figures.canvas import new_figure
from fairtune.report.figures.palette import (
    SHADES,
    VERMILION,
    Colours,
    class_colours,
    class_letters,
    faded,
    ink_on,
    strength,
)
from fairtune.report.sections.maps.cells import (
    cell_width,
    class_key,
    draw_cells,
    extent,
    key_rows,
    map_figure,
    reliability_key,
    ring,
    shade_bar,
    short_count,
    write_in,
)
from fairtune.report.sections.maps.content import (
    pass_label,
    threshold_text,
    units_left,
    used,
)

MAP_WIDTH = 6.0


def label_map(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, MAP_WIDTH, above=0.55 + 0.2 * key_rows(record))
    axes = figure.subplots()
    draw_label_map(axes, record, cell_width(record.grid, MAP_WIDTH))
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


RELIABILITY_WIDTH = 6.0
STEPS = (25.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 100.0)


def reliability_map(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, RELIABILITY_WIDTH, beside=0.9)
    axes = figure.subplots()
    draw_reliability(figure, axes, record, cell_width(record.grid, RELIABILITY_WIDTH))
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


U_WIDTH = 6.0


def u_matrix(record: MapRecord, title: str) -> Figure:
    figure = map_figure(record.grid, U_WIDTH, beside=0.9)
    axes = figure.subplots()
    draw_u_matrix(figure, axes, record, cell_width(record.grid, U_WIDTH))
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


COMBINED_WIDTH, KEY_WIDTH = 6.4, 0.95


def combined_map(record: MapRecord, title: str) -> Figure:
    """Colour and letter are the class, the colour's strength the reliability, the number is of examples."""
    figure = map_figure(record.grid, COMBINED_WIDTH, beside=KEY_WIDTH, above=0.55 + 0.2 * key_rows(record))
    axes, key = figure.subplots(1, 2, width_ratios=(COMBINED_WIDTH, KEY_WIDTH / 2.4))
    draw_combined(axes, record, cell_width(record.grid, COMBINED_WIDTH))
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


MOST_SMALL = 12
ACROSS = 4
SMALL_WIDTH = 2.3


def over_epochs(records: Sequence[MapRecord], title: str) -> Figure:
    """Class and reliability of every cell after each labelling pass; of many passes some, the first and last among them."""
    passes, chosen = [record.figures for record in records], spread_out(records)
    left, right, top, bottom = extent(records[0].grid)
    across = min(ACROSS, len(chosen))
    down = math.ceil(len(chosen) / across)
    height = min(SMALL_WIDTH * (bottom - top) / (right - left), 2.2 * SMALL_WIDTH)
    figure = new_figure(
        max(across * SMALL_WIDTH, 2 * SMALL_WIDTH), down * (height + 0.4) + 0.35 + 0.2 * key_rows(records[0])
    )
    for place, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if place >= len(chosen):
            axes.set_axis_off()
            continue
        one = chosen[place].figures
        draw_combined(axes, chosen[place], cell=0, small=True)
        axes.set_title(f"{pass_label(one, passes)}: {used(one)}{units_left(one)}", loc="left", fontsize=8)
    figure.suptitle(f"The map over training, {title}", x=0.01, ha="left", fontsize=9.5)
    class_key(figure, records[-1], hatched=False)
    return figure


def spread_out(records: Sequence[MapRecord], most: int = MOST_SMALL) -> list[MapRecord]:
    """At most so many, evenly, with the first and the last."""
    if len(records) <= most:
        return list(records)
    return [records[place] for place in np.linspace(0, len(records) - 1, most).round().astype(int)]


MOST_FRAMES = 60
GIF_DOTS = 90
SECONDS = 12
"""How long it takes at most; a frame stands for a second at most and a tenth at least."""
HELD = 3
"""Frames that the last map stands for before it begins again."""


def animated(records: Sequence[MapRecord], title: str) -> bytes:
    """One frame per labelling pass, in an endless loop."""
    passes, chosen = [record.figures for record in records], spread_out(records, MOST_FRAMES)
    first = records[0]
    figure = map_figure(first.grid, COMBINED_WIDTH, beside=KEY_WIDTH, above=0.55 + 0.2 * key_rows(first))
    axes, key = figure.subplots(1, 2, width_ratios=(COMBINED_WIDTH, KEY_WIDTH / 2.4))
    reliability_key(key, first)
    class_key(figure, first)
    writer = PillowWriter(fps=min(10, max(1, round(len(chosen) / SECONDS))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.gif"
        with writer.saving(figure, str(path), dpi=GIF_DOTS):
            for place, record in enumerate(chosen):
                axes.clear()
                draw_combined(axes, record, cell_width(record.grid, COMBINED_WIDTH))
                one = record.figures
                axes.set_title(f"{title}, {pass_label(one, passes)}: {used(one)}{units_left(one)}", loc="left")
                for _ in range(HELD if place == len(chosen) - 1 else 1):
                    writer.grab_frame(facecolor="white")
        return path.read_bytes()
