"""Pictures of hidden units: component planes, and how active each unit is over the training examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from fairtune.analysis.maps import MapRecord
from fairtune.core.grid import Grid
from fairtune.report.figures.canvas import new_figure
from fairtune.report.figures.palette import BLUE, SHADES, VERMILION
from fairtune.report.sections.maps.cells import extent, outlines, shade_bar
from fairtune.report.sections.maps.content import pass_label

WIDTH, LEAST_WIDTH, WIDEST = 13.0, 7.5, 1.5
"""Of the figure, and of one plane, in inches."""
MOST_ACROSS = 16
PALE = 0.3
"""Strength of the colour of a cell that no example falls on."""
GAP = 0.1
"""Between planes, as a share of one's width."""


@dataclass(frozen=True)
class Plane:
    """One unit's plane.

    Args:
        empty: cells that no example falls on; what their prototypes say was never asked.
        gone: when the unit was removed, None for one that is left; the plane is the last it had.
    """

    unit: int
    values: npt.NDArray[np.float32]
    empty: npt.NDArray[np.bool_]
    gone: str | None


def planes_of(records: Sequence[MapRecord]) -> list[Plane]:
    """Units that are left by number, then those removed, the earliest first."""
    passes = [record.figures for record in records]
    left, removed = [], []
    for record in records:
        gone, empty = {int(unit) for unit in record.removed}, record.labels < 0
        last = record is records[-1]
        for place, unit in enumerate(record.units):
            if int(unit) in gone:
                removed.append(Plane(int(unit), record.prototypes[:, place], empty, pass_label(record.figures, passes)))
            elif last:
                left.append(Plane(int(unit), record.prototypes[:, place], empty, None))
    return left + removed


def component_planes(records: Sequence[MapRecord], title: str) -> Figure:
    """All planes on one scale, the removed units last and in another colour."""
    grid, planes = records[-1].grid, planes_of(records)
    left, right, top, bottom = extent(grid)
    width, height = right - left, bottom - top
    across = min(MOST_ACROSS, max(4, math.ceil(math.sqrt(1.6 * len(planes)))))
    step_x, step_y = width * (1 + GAP), height * (1 + GAP) + 0.28 * width
    down = math.ceil(len(planes) / across)
    inch = min(WIDTH / across, WIDEST) / step_x
    figure = new_figure(max(LEAST_WIDTH, across * step_x * inch + 0.9), down * step_y * inch + 0.6)
    axes = figure.subplots()
    ends = [float(np.min([p.values.min() for p in planes])), float(np.max([p.values.max() for p in planes]))]
    shades = ScalarMappable(
        Normalize(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 1), matplotlib.colormaps[SHADES]
    )
    moves = np.array([(place % across * step_x, place // across * step_y) for place in range(len(planes))])
    if grid.topology == "rectangular":
        _draw_squares(axes, planes, grid, moves, shades)
    else:
        _draw_outlines(axes, planes, outlines(grid) - (left, top), moves, shades)
    _name(axes, planes, moves, width, font=min(9.0, 72 * inch * width * 0.13))
    axes.set(xlim=(-0.1, across * step_x), ylim=(down * step_y - 0.28 * width, -0.28 * width), aspect="equal")
    axes.set_axis_off()
    gone = sum(plane.gone is not None for plane in planes)
    removed = f"; {gone} removed units last (×, with when; their last plane)" if gone else ""
    axes.set_title(
        f"Component planes, {title}: activation of each hidden unit; pale: no example falls there{removed}", loc="left"
    )
    shade_bar(figure, axes, shades, "activation in the prototype", inches=3.5)
    return figure


def _draw_squares(
    axes: Axes, planes: Sequence[Plane], grid: Grid, moves: npt.NDArray[np.float64], shades: ScalarMappable
) -> None:
    """One small picture per plane: fifty thousand squares would take many seconds."""
    for plane, (x, y) in zip(planes, moves, strict=True):
        picture = _colours(plane, shades).reshape(grid.columns, grid.rows, 3).transpose(1, 0, 2)
        axes.imshow(picture, extent=(x, x + grid.columns, y + grid.rows, y), interpolation="nearest")


def _draw_outlines(
    axes: Axes, planes: Sequence[Plane], corners: npt.NDArray[np.float64], moves: npt.NDArray[np.float64], shades: ScalarMappable
) -> None:  # fmt: skip
    """All cells of all planes as one collection: a hundred axes would take a minute."""
    cells = (corners[None] + moves[:, None, None, :]).reshape(-1, *corners.shape[1:])
    colours = np.concatenate([_colours(plane, shades) for plane in planes])
    axes.add_collection(PolyCollection(list(cells), facecolors=colours, edgecolors=colours, linewidths=0.1))


def _colours(plane: Plane, shades: ScalarMappable) -> npt.NDArray[np.float64]:
    colours = np.asarray(shades.to_rgba(plane.values), dtype=np.float64)[:, :3]
    colours[plane.empty] = 1 - PALE * (1 - colours[plane.empty])
    return colours


def _name(axes: Axes, planes: Sequence[Plane], moves: npt.NDArray[np.float64], width: float, font: float) -> None:
    for plane, (x, y) in zip(planes, moves, strict=True):
        name, ink = (str(plane.unit), "black") if plane.gone is None else (f"× {plane.unit}, {plane.gone}", VERMILION)
        axes.text(x + width / 2, y - 0.04 * width, name, ha="center", va="bottom", fontsize=font, color=ink)


MOST_LABELLED = 140
TICKS = (0, 1, 5, 20, 50, 100)


def activation_histograms(record: MapRecord, title: str) -> Figure:
    """Shares of examples in twentieths of 0..1 with mean and standard deviation; beside them what pruning looks at."""
    order = np.argsort(-record.std, kind="stable")
    rows = len(order)
    figure = new_figure(8.6, max(3.2, min(13.0, 0.09 * rows + 1.6)))
    left, right = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    image = _draw_shares(left, record, order)
    _draw_deviations(right, record, order)
    shade_bar(figure, right, image, "examples (%)", ticks=TICKS, inches=4)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    font = max(4.2, min(8.0, 72 * (figure.get_figheight() - 1.2) / rows * 0.72))
    labels = [str(unit) for unit in record.units[order]]
    if rows <= MOST_LABELLED:
        left.set_yticks(range(rows), labels, fontsize=font)
    left.set_ylim(rows - 0.5, -0.5)
    left.tick_params(axis="y", length=0)
    left.set_ylabel("hidden unit")
    heading = f"Activations of hidden units over the training examples, {title}; those that vary most first"
    figure.suptitle(heading, x=0.01, ha="left", fontsize=9.5)
    return figure


def _draw_shares(axes: Axes, record: MapRecord, order: npt.NDArray[np.int64]) -> AxesImage:
    counts = record.histogram[order].astype(np.float64)
    shares = 100 * counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    image = axes.imshow(
        shares, aspect="auto", extent=(0, 1, len(order) - 0.5, -0.5), cmap="Greys", norm=PowerNorm(0.5, 0, 100),
        interpolation="nearest",
    )  # fmt: skip
    rows = np.arange(len(order))
    axes.plot(record.mean[order], rows, "o", color=VERMILION, markersize=2.8)
    axes.set(xlim=(0, 1), xlabel="activation; ● mean")
    return image


def _draw_deviations(axes: Axes, record: MapRecord, order: npt.NDArray[np.int64]) -> None:
    rows, std = np.arange(len(order)), record.std[order]
    gone = np.isin(record.units[order], record.removed)
    axes.hlines(rows, 0, std, color="#b0b0b0", linewidth=0.8)
    axes.plot(std[~gone], rows[~gone], "o", color=BLUE, markersize=3, label="kept")
    if gone.any():
        axes.plot(std[gone], rows[gone], "x", color=VERMILION, markersize=4, label="removed at this pass")
    if record.figures.prune is not None:
        axes.axvline(record.figures.prune, color="black", linewidth=0.9, linestyle="--", label="pruning threshold")
    axes.set(xlim=(0, None), xlabel="standard deviation")
