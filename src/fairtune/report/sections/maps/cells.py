"""The cells of a map on a page: squares or hexagons, what is written in them, and the keys and bars beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection, PathCollection, PolyCollection
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from fairtune.analysis.maps import MapRecord
from fairtune.core.grid import Grid
from fairtune.core.printable import clip
from fairtune.report.figures.canvas import new_figure
from fairtune.report.figures.palette import (
    class_colours,
    class_letters,
    faded,
    strength,
)

LINE, HATCH, EMPTY = "#9a9a9a", "#d4d4d4", "#f1f1f1"
LEAST_FONT, MOST_FONT = 3.4, 9.0
"""In points; what would have to be smaller is not written."""
MIDDLE = 0.36
"""Half the height of capitals and digits, in the size of the letters."""
SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
HEXAGON = np.array([(np.sin(turn), -np.cos(turn)) for turn in np.arange(6) * np.pi / 3]) / np.sqrt(3)
Points = npt.NDArray[np.float64]


def outlines(grid: Grid) -> Points:
    """The corners of every cell, [cells, corners, 2]."""
    shape = HEXAGON if grid.topology == "hexagonal" else SQUARE
    corners: Points = grid.positions()[:, None, :] + shape
    return corners


def extent(grid: Grid) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of all cells."""
    corners = outlines(grid).reshape(-1, 2)
    (left, top), (right, bottom) = corners.min(axis=0), corners.max(axis=0)
    return float(left), float(right), float(top), float(bottom)


def map_figure(grid: Grid, width: float, beside: float = 0.0, above: float = 0.5) -> Figure:
    """An empty figure in the shape of the map.

    Args:
        width: of the map itself, in inches.
        beside: width for a legend.
        above: height for titles.
    """
    left, right, top, bottom = extent(grid)
    height = min(width * (bottom - top) / (right - left), 2.2 * width)
    figure = new_figure(width + beside, height + above)
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.07)
    return figure


def frame(axes: Axes, grid: Grid) -> None:
    """Room for the cells and nothing around them; row 0 is at the top."""
    left, right, top, bottom = extent(grid)
    axes.set(xlim=(left - 0.06, right + 0.06), ylim=(bottom + 0.06, top - 0.06), aspect="equal")
    axes.set_axis_off()


def draw_cells(
    axes: Axes, grid: Grid, colours: npt.NDArray[np.floating], empty: npt.NDArray[np.bool_] | None = None,
    line: float = 0.5, hatched: bool = True,
) -> None:  # fmt: skip
    """Fill the cells; an empty one is white and hatched, a small one grey.

    Args:
        colours: one per cell, [cells, 3 or 4].
        line: width of the lines between cells.
        hatched: False where cells are too small for it.
    """
    corners = outlines(grid)
    none = np.zeros(grid.cells, dtype=bool) if empty is None else empty
    filled = PolyCollection(list(corners[~none]), facecolors=colours[~none], edgecolors=LINE, linewidths=line)
    _add(axes, filled)
    if none.any():
        face, hatch = ("white", "////") if hatched else (EMPTY, None)
        bare = PolyCollection(list(corners[none]), facecolors=face, edgecolors=HATCH, linewidths=line, hatch=hatch)
        _add(axes, bare)
    frame(axes, grid)


def ring(axes: Axes, grid: Grid, chosen: npt.NDArray[np.bool_], width: float = 0.8) -> None:
    """A dark line just inside the cells that are chosen."""
    centres = grid.positions()[:, None, :]
    inner = centres + 0.86 * (outlines(grid) - centres)
    rings = PolyCollection(list(inner[chosen]), facecolors="none", edgecolors="#111111", linewidths=width, zorder=2)
    _add(axes, rings)


def cell_width(grid: Grid, width: float) -> float:
    """How wide a cell is, in points, on a map of so many inches."""
    left, right, top, bottom = extent(grid)
    return 72 * min(width / (right - left), 2.2 * width / (bottom - top))


def write_in(
    axes: Axes, grid: Grid, words: Sequence[str], inks: Sequence[str], cell: float, size: float, down: float = 0.0
) -> None:
    """Write a word in each cell, where it fits; as shapes, since a thousand texts take seconds to draw.

    Args:
        cell: width of a cell in points.
        size: of the letters, as a share of the cell.
        down: from the cell's centre, as a share of the cell.
    """
    shapes: dict[str, list[Path]] = {}
    for (x, y), word, ink in zip(grid.positions(), words, inks, strict=True):
        font = min(MOST_FONT, size * cell, 1.35 * cell / max(1, len(word)))
        if word and font >= LEAST_FONT:
            shape = _letters(word)
            at = np.asarray(shape.vertices) * (font / cell, -font / cell) + (x, y + down)
            shapes.setdefault(ink, []).append(Path(at, shape.codes))
    for ink, found in shapes.items():
        _add(axes, PathCollection([Path.make_compound_path(*found)], facecolors=ink, linewidths=0, zorder=3))


def _add(axes: Axes, shapes: Collection) -> None:
    """Draw shapes that never go beyond the frame, so that nobody need measure them."""
    shapes.set_in_layout(False)
    axes.add_collection(shapes, autolim=False)


@lru_cache(maxsize=4096)
def _letters(word: str) -> Path:
    """A word's shape, one high, around its middle."""
    shape = TextPath((0, 0), word, size=1, prop=FontProperties(family="DejaVu Sans"))
    across = shape.get_extents()
    middle = ((across.x0 + across.x1) / 2, MIDDLE)
    return Path(np.asarray(shape.vertices) - middle, shape.codes)


def short_count(count: int) -> str:
    """A number of examples in at most four signs."""
    for size, unit in ((10**6, "M"), (10**4, "k")):
        if count >= size:
            return f"{count / (10**6 if unit == 'M' else 1000):.0f}{unit}"
    return str(count)


def shade_bar(
    figure: Figure, axes: Axes, shades: ScalarMappable, label: str, ticks: Sequence[float] | None = None,
    inches: float = 5.0,
) -> Colorbar:  # fmt: skip
    """Args:
    inches: height of the bar at most.
    """
    part = min(0.9, inches / figure.get_figheight())
    bar = figure.colorbar(shades, ax=axes, shrink=part, aspect=28, pad=0.02, ticks=ticks)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    return bar


LONGEST = 24
COLUMNS = 3
MOST_BARS = 5


def key_rows(record: MapRecord) -> int:
    """Lines that the key of classes takes."""
    return -(-(len(record.classes) + 1) // COLUMNS)


def class_key(figure: Figure, record: MapRecord, hatched: bool = True) -> None:
    """Below the map: a patch and a letter for each class, and what an empty cell looks like."""
    colours, letters = class_colours(len(record.classes)), class_letters(record.classes)
    handles = [
        Patch(facecolor=colour, edgecolor="none", label=f"{letter} = {clip(name, LONGEST)}")
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
    image = faded(class_colours(bars)[None, :, :], strength(levels, classes)[:, None].repeat(bars, axis=1))
    axes.imshow(image, aspect="auto", extent=(-0.5, bars - 0.5, 100 * levels[-1], 100), interpolation="nearest")
    axes.set_xticks(range(bars), class_letters(record.classes)[:bars], fontsize=7.5)
    axes.set_ylabel("reliability (%)", fontsize=8)
    axes.yaxis.set_label_position("right")
    axes.tick_params(left=False, labelleft=False, right=True, labelright=True, bottom=False, labelsize=7.5)
    if record.figures.threshold is not None:
        axes.axhline(100 * record.figures.threshold, color="#111111", linewidth=1.2)
    axes.spines[:].set_visible(False)
