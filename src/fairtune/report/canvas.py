"""What all figures share: a quiet style in the page's own colours, and an empty figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairtune.report.svg import INK, PAGE


@contextmanager
def drawing(ink: str = INK, page: str = PAGE) -> Iterator[None]:
    """Settings of all figures. Arm names are text, never formulas."""
    with matplotlib.rc_context(
        {
            "text.parse_math": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "fairtune",
            "font.family": ["DejaVu Sans"],
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.facecolor": page,
            "axes.edgecolor": ink,
            "axes.labelcolor": ink,
            "axes.titlecolor": ink,
            "text.color": ink,
            "xtick.color": ink,
            "ytick.color": ink,
        }
    ):
        yield


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
