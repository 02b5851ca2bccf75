"""How radius and rate of a map go down while it learns: `left` is the share of the training that is left. No torch."""

from __future__ import annotations

import math


def radius_at(left: float, radius: tuple[int, int]) -> int:
    """Steps around the winner that move: from high to low with the fourth power of what is left.

    In epoch e of N, counted from 1, that is (N - e) / N.
    """
    high, low = radius
    return low + math.floor(left**4 * (high - low) + 0.5)


def rate_at(left: float, rate: tuple[float, float]) -> float:
    """How far the winner moves towards an example: from high to low in a straight line."""
    high, low = rate
    return low + left * (high - low)
