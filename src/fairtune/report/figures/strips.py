"""Row plots that fit any width: every row of a table has its own strip, and places on it are shares of its width.

The page draws them with percentages, so nothing is scaled: bars grow with the window, and text and marks keep their size on a
phone, on paper and on a wide screen. Figures for papers and notebooks are drawn by matplotlib from the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairtune.core.numbers import MINUS
from fairtune.report.figures.ticks import UNEVEN, WIDE, even_ticks, log_ticks

ROOM = 0.04
"""Of the width, left free at either end."""
Curve = Callable[[float], float]

LETTER_PERCENT = 2.0
"""How wide a letter of an axis is, about, in percent of a phone's strip."""


@dataclass(frozen=True)
class Tick:
    """A mark of an axis: where, in percent of the width, and what it says."""

    at: float
    text: str


@dataclass(frozen=True)
class StripAxis:
    """The axis that all strips of a plot share.

    Args:
        low, high: what its ends stand for, as `bend` gives it.
        bend: from a value to something that is even along the axis.
        uneven: whether that is not the value itself.
    """

    low: float
    high: float
    bend: Curve
    ticks: tuple[Tick, ...]
    uneven: bool = False

    def at(self, value: float) -> float:
        """Where a value is, in percent of the width; beyond the ends, at the end."""
        share = (self.bend(value) - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def holds(self, value: float) -> bool:
        return self.low <= self.bend(value) <= self.high


def difference_axis(values: Iterable[float], sizes: Iterable[float] = (), least: float = 1.0) -> StripAxis:
    """An axis for differences, which shows zero.

    Args:
        values: that must be on it.
        sizes: of the intervals; given where some may dwarf others, and the axis is then logarithmic away from zero.
        least: what is linear then, at the least.
    """
    shown = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *shown]), max([0.0, *shown])
    if low == high:
        low, high = -1.0, 1.0
    found = [size for size in sizes if size > 0 and math.isfinite(size)]
    if found and max(found) > UNEVEN * min(found):
        linear = max(min(found), least)

        def bend(value: float) -> float:
            size = abs(value)
            return value / linear if size <= linear else math.copysign(1 + math.log10(size / linear), value)

        marks = [0.0]
        for side in (1, -1):
            end = high if side > 0 else -low
            marks += [side * mark for mark in log_ticks(linear, end, most=3)] if end > linear else []
        return _axis(low, high, bend, sorted(marks), signed, uneven=True)
    low, high = low - ROOM * (high - low), high + ROOM * (high - low)
    return _axis(low, high, lambda value: value, even_ticks(low, high), signed)


def value_axis(values: Iterable[float], bounds: tuple[float, float], may_bend: bool = False) -> StripAxis:
    """An axis for values that have bounds.

    Args:
        may_bend: it is logarithmic where the values span a wide range.
    """
    shown = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(shown), max(shown)
    if may_bend and low > 0 and high > WIDE * low:
        low, high = low / 1.1, high * 1.1
        return _axis(low, high, math.log10, log_ticks(low, high, most=5), plain, uneven=True)
    room = ROOM * (high - low) or max(abs(high) * 0.01, 0.5)
    low, high = max(bounds[0], low - room), min(bounds[1], high + room)
    return _axis(low, high, lambda value: value, even_ticks(low, high), plain)


def _axis(
    low: float, high: float, bend: Curve, marks: list[float], show: Callable[[float], str], uneven: bool = False
) -> StripAxis:
    """An axis between two values, with ticks where there is room for their text."""
    bare = StripAxis(bend(low), bend(high), bend, (), uneven)
    ticks = [Tick(bare.at(mark), show(mark)) for mark in sorted(marks, key=abs) if bare.holds(mark)]
    kept: list[Tick] = []
    for tick in ticks:  # from zero outwards, since what is crowded lies away from it
        if not uneven or all(abs(tick.at - other.at) >= _room(tick, other) for other in kept):
            kept.append(tick)
    return StripAxis(bare.low, bare.high, bend, tuple(sorted(kept, key=lambda tick: tick.at)), uneven)


def _room(one: Tick, other: Tick) -> float:
    """How far two texts have to be apart, in percent of a narrow strip."""
    return LETTER_PERCENT * ((len(one.text) + len(other.text)) / 2 + 1)


def plain(value: float) -> str:
    return f"{value:,.10g}".replace("-", MINUS)


def signed(value: float) -> str:
    """Zero has no sign."""
    return "0" if abs(value) < 1e-12 else f"{value:+,.10g}".replace("-", MINUS)
