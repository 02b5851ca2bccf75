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
LETTER_INCHES, SMALL_LETTER_INCHES, TITLE_LETTER_INCHES = 0.073, 0.055, 0.08
"""How wide a letter is, about: in a name at the left, in one above its row, and in a title."""
NAMES_SHARE = 0.55
"""Of a figure's width that names at its left may take."""
SHORTEST_TITLE = 24


def cut_middle(text: str, most: float) -> str:
    """Text of so many letters at most: start and end tell arms apart better than the start alone."""
    kept = max(int(most) - 1, 8)
    return text if len(text) <= kept + 1 else f"{text[: (kept + 1) // 2]}…{text[-(kept // 2) :]}"


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
    """Set the title, on several lines where it is wider than what the names leave; call it when the rows are named."""
    names = 0 if narrow else max((len(label.get_text()) for label in axes.get_yticklabels()), default=0)
    letters = int((_inches(axes) - LETTER_INCHES * names) / TITLE_LETTER_INCHES)
    axes.set_title(fill(title, max(letters, SHORTEST_TITLE)), loc="left")


def _inches(axes: Axes) -> float:
    """How wide the part of the figure is that the axes have."""
    place = axes.get_subplotspec()
    return float(axes.figure.bbox.width / axes.figure.dpi) / (place.get_gridspec().ncols if place is not None else 1)


def legend_columns(labels: Sequence[str], width: float) -> int:
    """How many labels fit beside each other in so many inches."""
    return max(1, min(3, len(labels), round(12.4 * width) // (max(map(len, labels)) + 6)))


def figure_height(width: float, rows: int) -> float:
    """Inches for so many rows, their axis and the title."""
    return 1.0 + (ROW_INCHES if width >= NARROW else NARROW_ROW_INCHES) * max(1, rows)


def label_arms(axes: Axes, arms: list[tuple[str, int]], narrow: bool = False) -> None:
    """Name the rows: at the left, or where that leaves no room for the rest, above each."""
    room = _inches(axes) / SMALL_LETTER_INCHES if narrow else NAMES_SHARE * _inches(axes) / LETTER_INCHES
    most = room - len(" (n = 10)")
    names = [f"{cut_middle(arm, most)} (n = {n})" for arm, n in arms]
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
