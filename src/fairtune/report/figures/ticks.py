"""Where an axis is marked, and when it is not linear."""

from __future__ import annotations

import math

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_TICKS = 7
WIDE = 5.0
"""A range of more than this factor is shown on a logarithmic scale."""
UNEVEN = 20.0
"""Differences of which one is more than this factor larger than another have no common linear scale."""


def even_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers at equal distances between two numbers."""
    if not low < high:
        return [low]
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = MOST_TICKS) -> list[float]:
    """1, 2, 5, 10 ... between two numbers, as few kinds of them as leave no crowd."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits]
        within = [value for value in found if low <= value <= high]
        if len(within) <= most:
            return within
    return within[:: math.ceil(len(within) / most)]
