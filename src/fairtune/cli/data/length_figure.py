"""The picture of `fairtune data lengths`: how many examples each `max_length` leaves whole."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fairtune.core.errors import DataError
from fairtune.core.files import write_atomically
from fairtune.core.printable import printable
from fairtune.report.figures.canvas import drawing, new_figure, png
from fairtune.report.figures.palette import BLUE, GREY, VERMILION
from fairtune.tasks.card.lengths import CHOICES, Counts, Lengths


def save_length_figure(lengths: Lengths, file: Path) -> None:
    """Write the picture as PNG or SVG, whole or not at all; the same lengths give the same bytes.

    Raises:
        DataError: the file cannot be written.
    """
    content = BytesIO()
    with drawing(ink="black", page="white"):
        figure = new_figure(7.5, 4.3)
        axes = figure.subplots()
        _draw(axes, lengths)
        sampled = " sampled" if lengths.train.sampled else ""
        title = f"{lengths.task} in tokens of {lengths.model}: {lengths.train.n:,}{sampled} training examples"
        figure.suptitle(printable(title), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
        if file.suffix.lower() == ".png":
            content.write(png(figure))
        else:
            figure.savefig(content, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    try:
        write_atomically(file, content.getvalue())
    except OSError as error:
        raise DataError(f"-o {file}: cannot be written: {error.strerror or error}.") from None


def _draw(axes: Axes, lengths: Lengths) -> None:
    """The share of examples that each max_length leaves whole."""
    train = lengths.train
    low = max(2, min(train.covering(0.001), 16))
    high = max(640, round(1.25 * lengths.covering), train.covering(0.995))
    _curve(axes, train, "training", low, high, color=BLUE, linewidth=2.2)
    _curve(axes, lengths.heldout, "validation and test", low, high, color=GREY, linewidth=1.3, linestyle="--")
    share = 100 * lengths.coverage
    axes.plot([low, lengths.covering, lengths.covering], [share, share, 0], color=VERMILION, linewidth=1.4, zorder=3)
    text = f"{lengths.covering:,} tokens cover {100 * lengths.coverage:.6g} %"
    axes.annotate(text, (low, share), (5, -4), textcoords="offset points", va="top", color=VERMILION, fontweight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(FixedLocator([4, 8, 16, 32, *CHOICES, 1024, 2048, 4096]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
    axes.set_xlabel("max_length in tokens")
    axes.set_title("examples that max_length leaves whole", loc="left")
    axes.grid(color=GREY, alpha=0.15, linewidth=0.6)
    axes.legend(loc="lower right", frameon=False)


def _curve(axes: Axes, counts: Counts, name: str, low: int, high: int, **style: Any) -> None:
    lengths, examples = np.unique(counts.lengths, return_counts=True)
    coverage = 100 * examples.cumsum() / counts.n
    axes.step([low, *lengths, high], [0, *coverage, 100], where="post", label=name, **style)
