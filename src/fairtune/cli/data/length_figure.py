"""The picture of `fairtune data lengths`: how many examples each `max_length` leaves whole."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.ticker import PercentFormatter, ScalarFormatter

from fairtune.core.errors import DataError
from fairtune.core.files import write_atomically
from fairtune.core.printable import printable
from fairtune.report.figures.canvas import drawing, new_figure
from fairtune.report.figures.palette import BLUE, GREY, VERMILION
from fairtune.tasks.card.lengths import Lengths


def save_length_figure(lengths: Lengths, file: Path) -> None:
    """Write the picture as PNG or SVG, whole or not at all; the same lengths give the same bytes.

    Raises:
        DataError: the file cannot be written.
    """
    train, covering, coverage = lengths.train, lengths.covering, lengths.coverage
    with drawing(ink="black", page="white"):
        figure = new_figure(7.5, 4.3)
        axes = figure.subplots()
        axes.ecdf(train.lengths, label="training", color=BLUE, linewidth=2.2)
        axes.ecdf(lengths.heldout.lengths, label="validation and test", color=GREY, linestyle="--")
        axes.plot([covering, covering], [0, coverage], color=VERMILION)
        text = f"{covering:,} tokens cover {100 * coverage:.6g} % "
        axes.annotate(text, (covering, 0.02), ha="right", color=VERMILION, fontweight="bold")
        axes.set_xscale("log", base=2)
        axes.set_xlim(max(2, min(train.covering(0.001), 16)), max(640, 1.25 * covering, train.covering(0.995)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("max_length in tokens")
        axes.set_ylabel("examples that max_length leaves whole")
        axes.grid(color=GREY, alpha=0.15)
        axes.legend(loc="upper left", frameon=False)
        sampled = " sampled" if train.sampled else ""
        axes.set_title(
            printable(f"{lengths.task} in tokens of {lengths.model}: {train.n:,}{sampled} training examples"),
            loc="left",
        )
        content = BytesIO()
        figure.savefig(content, format=file.suffix[1:].lower(), dpi=160, metadata={"Date": None, "Creator": None})
    try:
        write_atomically(file, content.getvalue())
    except OSError as error:
        raise DataError(f"-o {file}: cannot be written: {error.strerror or error}.") from None
