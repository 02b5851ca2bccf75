"""What matplotlib's figures with one row per arm share."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairtune.report.figures.palette import GREY

ROW_INCHES, NARROW_ROW_INCHES = 0.36, 0.46
NARROW = 5.0
"""A figure of fewer inches has its names above the rows, where they take no width."""
NARROW_TITLE = 42
"""Letters of a title that a narrow figure holds."""


def place_apart(axes: Axes, place: int, value: float, ends: list[float], text: str, colour: str) -> None:
    """The most frequent class; where it lies so far off that beside it nothing could be told apart, at the edge, in figures."""
    low, high = axes.get_xlim()
    axes.set_xlim(low, high)
    if not axes.lines or low <= value <= high:
        axes.plot([max(ends[0], low), min(ends[1], high)], [place, place], color=colour, linewidth=2, zorder=3)
        axes.plot([value], [place], "D", color=colour, markersize=6, zorder=4)
        return
    left = value < low
    axes.annotate(
        f"← {text}" if left else f"{text} →", (0.01 if left else 0.99, place), xycoords=axes.get_yaxis_transform(),
        ha="left" if left else "right", va="center", fontsize=7.5, color=colour,
    )  # fmt: skip


def set_apart(axes: Axes, simple: list[bool]) -> None:
    """A line above the simple baselines, where they stand below other arms."""
    if any(simple) and not all(simple):
        place = simple.index(True) - 0.5
        axes.axhline(place, color=GREY, linewidth=0.8, zorder=1)
        axes.annotate(
            "simple baselines", (0.995, place), xycoords=axes.get_yaxis_transform(), xytext=(0, -2),
            textcoords="offset points", ha="right", va="top", fontsize=6.5, color=GREY,
        )  # fmt: skip


def entitle(axes: Axes, title: str, narrow: bool = False) -> None:
    """Set the title, on several lines where the figure is narrow."""
    axes.set_title(fill(title, NARROW_TITLE) if narrow else title, loc="left")


def legend_columns(labels: Sequence[str], width: float) -> int:
    """How many labels fit beside each other in so many inches."""
    return max(1, min(3, len(labels), round(12.4 * width) // (max(map(len, labels)) + 6)))


def figure_height(width: float, rows: int) -> float:
    """Inches for so many rows, their axis and the title."""
    return 1.0 + (ROW_INCHES if width >= NARROW else NARROW_ROW_INCHES) * max(1, rows)


def label_arms(axes: Axes, arms: list[tuple[str, int]], narrow: bool = False) -> None:
    """Name the rows: at the left, or where that leaves no room for the rest, above each."""
    names = [f"{arm} (n = {n})" for arm, n in arms]
    axes.set_yticks(range(len(arms)), [] if narrow else names)
    for place, name in enumerate(names if narrow else ()):
        axes.annotate(
            name, (0, place), xycoords=axes.get_yaxis_transform(), xytext=(0, 6), textcoords="offset points", fontsize=7
        )
    axes.set_ylim(len(arms) - 0.4, -0.8 if narrow else -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=axes.xaxis.label.get_color(), alpha=0.12, linewidth=0.6)
