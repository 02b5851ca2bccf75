"""How radius and rate of a map go down while it learns. No torch."""

from __future__ import annotations

import math


def radius_at(left: float, radius: tuple[int, int]) -> int:
    """How many steps around the winner move: the high radius shrinks to the low one with the fourth power of what is left.

    Args:
        left: the share of the training that is left; in epoch e of N, counted from 1, it is (N - e) / N.
        radius: (high, low).
    """
    high, low = radius
    return low + math.floor(left**4 * (high - low) + 0.5)


def rate_at(left: float, rate: tuple[float, float]) -> float:
    """How far the winner moves towards an example: from the high rate down to the low one in a straight line.

    Args:
        left: as of `radius_at`.
        rate: (high, low).
    """
    high, low = rate
    return low + left * (high - low)
