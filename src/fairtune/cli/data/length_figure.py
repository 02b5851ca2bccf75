"""The picture of `fairtune data lengths`: how much each length covers, and what each choice of `max_length` costs."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fairtune.cli.data.length_view import percent
from fairtune.core.errors import DataError
from fairtune.core.files import write_atomically
from fairtune.core.printable import printable
from fairtune.report.figures.canvas import drawing, new_figure
from fairtune.report.figures.palette import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
)
from fairtune.tasks.card.lengths import CHOICES, REFERENCE, Lengths
from fairtune.tasks.tokens.counts import Counts

DOTS = 160
"""Of a PNG's inch."""
BINS = 36


def save_length_figure(lengths: Lengths, file: Path) -> None:
    """Write the picture as PNG or SVG, whole or not at all; the same lengths give the same bytes.

    Raises:
        DataError: the file cannot be written.
    """
    image_format = file.suffix.lower().removeprefix(".")
    metadata = {"Software": None} if image_format == "png" else {"Date": None, "Creator": None}
    content = BytesIO()
    with drawing(ink="black", page="white"):
        figure = new_figure(11.0, 4.3)
        left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
        _draw_coverage(left, lengths)
        _draw_costs(right, lengths)
        sampled = " sampled" if lengths.train.sampled else ""
        title = f"{lengths.task} in tokens of {lengths.model}: {lengths.train.n:,}{sampled} training examples"
        figure.suptitle(
            printable(title),
            x=0.01,
            ha="left",
            fontsize=11.5,
            fontweight="bold",
        )
        figure.savefig(content, format=image_format, dpi=DOTS, facecolor="white", metadata=metadata)
    try:
        write_atomically(file, content.getvalue())
    except OSError as error:
        raise DataError(f"-o {file}: cannot be written: {error.strerror or error}.") from None


def _draw_coverage(axes: Axes, lengths: Lengths) -> None:
    """The share of examples that each max_length leaves whole, over the shape of the lengths themselves."""
    train, heldout = lengths.train, lengths.heldout
    low = max(2, min(train.covering(0.001), 16))
    high = max(640, round(1.25 * lengths.covering), train.covering(0.995))
    _shape(axes, train, low, high)
    _curve(axes, heldout, "validation and test", low, high, color=GREY, linewidth=1.3, linestyle="--")
    _curve(axes, train, "training", low, high, color=BLUE, linewidth=2.2)
    _top(axes, low, "truncated", ha="left")
    for length in CHOICES:
        beyond, cut = length in lengths.beyond, train.cut(length)
        axes.plot([length, length], [0, 100], color=GREY, linewidth=0.7, alpha=0.6, zorder=1)
        text = "beyond" if beyond else percent(cut, 0 if cut >= 0.1 or cut == 0 else 1)
        _top(axes, length, text, color=GREY if beyond else "black", fontweight="normal" if beyond else "bold")
    share = 100 * lengths.coverage
    axes.plot([low, lengths.covering, lengths.covering], [share, share, 0], color=VERMILION, linewidth=1.4, zorder=3)
    axes.plot([lengths.covering], [share], "o", color=VERMILION, markersize=6, zorder=4)
    axes.annotate(
        f"{lengths.covering:,} tokens cover {percent(lengths.coverage)}",
        (low, share),
        xytext=(5, -4),
        textcoords="offset points",
        va="top",
        color=VERMILION,
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
    )
    _coverage_axes(axes, low, high)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False, fontsize=8
    )


def _top(axes: Axes, length: int, text: str, **style: Any) -> None:
    axes.annotate(text, (length, 102), **{"ha": "center", "fontsize": 8, "annotation_clip": False, **style})


def _curve(axes: Axes, counts: Counts, name: str, low: int, high: int, **style: Any) -> None:
    lengths, examples = np.unique(counts.lengths, return_counts=True)
    coverage = 100 * examples.cumsum() / counts.n
    axes.step([low, *lengths, high], [0, *coverage, 100], where="post", label=name, **style)


def _shape(axes: Axes, counts: Counts, low: int, high: int) -> None:
    """Examples of each length, behind the curves; its height means nothing beside its own shape."""
    edges = np.unique(np.geomspace(low, high, BINS).round())
    heights = [
        ((counts.lengths >= first) & (counts.lengths < last)).sum() / np.log(last / first)
        for first, last in pairwise(edges)
    ]
    scale = 62 / max(1, *heights)
    axes.bar(
        edges[:-1],
        [scale * h for h in heights],
        np.diff(edges),
        align="edge",
        color=BLUE,
        alpha=0.16,
        label="how many have each length",
        linewidth=0,
        zorder=0,
    )


def _coverage_axes(axes: Axes, low: int, high: int) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 100)
    ticks = [length for length in (4, 8, 16, 32, *CHOICES, 1024, 2048, 4096) if low <= length <= high]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
    axes.set_xlabel("max_length in tokens")
    axes.set_title("examples that max_length leaves whole", loc="left", pad=22)
    axes.grid(axis="y", color=GREY, alpha=0.15, linewidth=0.6)


def _draw_costs(axes: Axes, lengths: Lengths) -> None:
    """Bars of both ways to make batches, one pair per choice."""
    places = range(len(lengths.choices))
    counted = all(choice.grouped.flops is not None for choice in lengths.choices)
    for aside, way, colour, name in (
        (-0.2, "grouped", BLUE, "batches of similar length, as fairtune makes them"),
        (0.2, "padded", ORANGE, "every example padded to max_length"),
    ):
        ratios = [getattr(choice, way) for choice in lengths.choices]
        values = [float(ratio.flops if counted else ratio.tokens) for ratio in ratios]
        axes.barh([place + aside for place in places], values, 0.38, color=colour, label=name, linewidth=0)
        for place, value in zip(places, values, strict=True):
            text = f"{value:.2f} ×" if value < 9.95 else f"{value:.0f} ×"
            axes.annotate(text, (value, place + aside), (3, 0), textcoords="offset points", va="center", fontsize=7.5)
    labels = [
        f"{choice.max_length:,} ({percent(lengths.coverage)})"
        if choice.max_length == lengths.covering
        else f"{choice.max_length:,}"
        for choice in lengths.choices
    ]
    axes.set_yticks(list(places), labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    axes.set_xlim(0, 1.15 * max(axes.get_xlim()[1], 1))
    measure = "matrix products" if counted else "tokens"
    axes.set_title(f"{measure} of an epoch ({REFERENCE} in similar lengths is 1)", loc="left", x=-0.16, pad=22)
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 0.02), frameon=False, fontsize=8, borderaxespad=0.3)
