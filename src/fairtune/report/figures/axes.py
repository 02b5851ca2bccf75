"""Scales of an axis that follow from what it shows, so that one large value does not flatten all others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fairtune.report.figures.ticks import UNEVEN, WIDE, log_ticks


def log_if_wide(axes: Axes, which: Literal["x", "y"], values: Iterable[float]) -> bool:
    """A logarithmic scale, with plain numbers at its ticks, where the values span more than a factor."""
    found = [value for value in values if math.isfinite(value) and value > 0]
    if not found or max(found) <= WIDE * min(found):
        return False
    low, high = min(found) / 1.15, max(found) * 1.15
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(log_ticks(low, high)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_locator(NullLocator())
    return True


def symlog_if_wide(axes: Axes, ends: Sequence[tuple[float, float]], least: float) -> bool:
    """A scale that is linear around zero and logarithmic beyond, where some differences dwarf others.

    Args:
        ends: of the intervals that are shown.
        least: what is linear at the least.
    """
    sizes = [size for low, high in ends if (size := max(abs(low), abs(high))) > 0]
    if not sizes or max(sizes) <= UNEVEN * min(sizes):
        return False
    linear = max(min(sizes), least)
    axes.set_xscale("symlog", linthresh=linear, linscale=1)
    positive = log_ticks(linear, max(sizes), most=3)
    lowest, highest = min(low for low, _ in ends), max(high for _, high in ends)
    ticks = [0.0, *(t for t in positive if t <= highest), *(-t for t in positive if -t >= lowest)]
    axes.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+,.12g}" if value else "0"))
    axes.xaxis.set_minor_locator(NullLocator())
    return True
