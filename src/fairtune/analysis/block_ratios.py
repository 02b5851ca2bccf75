"""The ratio of two step times from rounds in which both took turns, with an interval that a few disturbed rounds cannot move.

Each round gives one logarithm of a ratio. Their pseudo-median (Hodges and Lehmann) is the estimate; its interval comes from
Wilcoxon's signed ranks, which needs no more than that noise hits both alike: then each difference is as likely up as down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

EXACT = 60
"""Rounds up to which the distribution of the signed ranks is computed; beyond, a normal one does."""
SPARE = 0.3
"""Of the risk that an interval may have, the share that is used: rounds that follow each other are not wholly independent, and two
copies of a model are not quite equally fast. So real A/A sessions keep what is promised; benchmarks/timing.py counts them."""
MOST_ROUNDS = 1_000
"""Rounds that are looked at one by one; more are averaged in groups first, since all pairs of them are looked at."""


@dataclass(frozen=True)
class BlockRatio:
    """A ratio of times with its interval.

    Args:
        n: rounds it comes from.
        low, high: infinitely far apart where there are too few rounds for an interval.
    """

    n: int
    ratio: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def holds_one(self) -> bool:
        return self.low <= 1 <= self.high


def block_ratio(ours: Sequence[float], theirs: Sequence[float], confidence: float) -> BlockRatio:
    """Our times over theirs.

    Args:
        ours, theirs: seconds of each round.
    """
    # a coarse clock may count nothing for a quick step
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a > 0 and b > 0]
    logs = np.array([math.log(a / b) for a, b in pairs])
    if len(logs) > MOST_ROUNDS:
        logs = np.array([np.median(group) for group in np.array_split(logs, MOST_ROUNDS)])
    n = len(logs)
    if n == 0:
        return BlockRatio(0, math.nan, 0.0, math.inf)
    averages = _walsh_averages(logs)
    rank = lowest_rank(n, 1 - SPARE * (1 - confidence))
    low, high = (averages[rank - 1], averages[-rank]) if rank else (-math.inf, math.inf)
    return BlockRatio(len(pairs), math.exp(float(np.median(averages))), math.exp(low), math.exp(high))


def _walsh_averages(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The mean of each pair of values, each with itself too, in order."""
    rows, columns = np.triu_indices(len(values))
    return np.sort((values[rows] + values[columns]) / 2)


@lru_cache(maxsize=4096)
def lowest_rank(n: int, confidence: float) -> int:
    """Which of the ordered averages ends the interval, counted from 1; 0 where no interval is wide enough."""
    tail, total = (1 - confidence) / 2, n * (n + 1) // 2
    if n > EXACT:
        from scipy.stats import norm

        mean, deviation = total / 2, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(1, math.floor(mean + float(norm.ppf(tail)) * deviation))
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] = ways[rank:] + ways[: total + 1 - rank]
        ways /= 2.0
    below = np.cumsum(ways)
    return int(np.searchsorted(below, tail, side="right"))
