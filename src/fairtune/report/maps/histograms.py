"""How active each hidden unit is over the training examples: a row a unit, those that vary most first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from fairtune.analysis.maps import MapRecord
from fairtune.report.canvas import new_figure
from fairtune.report.maps.bars import shade_bar
from fairtune.report.palette import BLUE, VERMILION

MOST_LABELLED = 140
TICKS = (0, 1, 5, 20, 50, 100)


def activation_histograms(record: MapRecord, title: str) -> Figure:
    """Shares of examples in twentieths of 0..1 with mean and standard deviation; beside them what pruning looks at."""
    order = np.argsort(-record.std, kind="stable")
    rows = len(order)
    figure = new_figure(8.6, max(3.2, min(13.0, 0.09 * rows + 1.6)))
    left, right = figure.subplots(1, 2, width_ratios=(3, 1), sharey=True)
    shown = _draw_shares(left, record, order)
    _draw_deviations(right, record, order)
    shade_bar(figure, right, shown, "examples (%)", ticks=TICKS, inches=4)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    font = max(4.2, min(8.0, 72 * (figure.get_figheight() - 1.2) / rows * 0.72))
    labels = [str(unit) for unit in record.units[order]]
    if rows <= MOST_LABELLED:
        left.set_yticks(range(rows), labels, fontsize=font)
    left.set_ylim(rows - 0.5, -0.5)
    left.tick_params(axis="y", length=0)
    left.set_ylabel("hidden unit")
    shown_as = f"Activations of hidden units over the training examples, {title}; those that vary most first"
    figure.suptitle(shown_as, x=0.01, ha="left", fontsize=9.5)
    return figure


def _draw_shares(axes: Axes, record: MapRecord, order: npt.NDArray[np.int64]) -> AxesImage:
    counts = record.histogram[order].astype(np.float64)
    shares = 100 * counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    shown = axes.imshow(
        shares, aspect="auto", extent=(0, 1, len(order) - 0.5, -0.5), cmap="Greys", norm=PowerNorm(0.5, 0, 100),
        interpolation="nearest",
    )  # fmt: skip
    rows = np.arange(len(order))
    axes.plot(record.mean[order], rows, "o", color=VERMILION, markersize=2.8)
    axes.set(xlim=(0, 1), xlabel="activation; ● mean")
    return shown


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
