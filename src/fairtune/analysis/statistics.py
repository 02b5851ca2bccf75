"""Means, intervals, paired differences and corrections for many comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import stats

from fairtune.analysis.resampling import Scored, bootstrap_variance
from fairtune.settings.metrics import title_of

MOST_SEEDS = 200


@dataclass(frozen=True)
class Summary:
    """One arm's figures over its seeds; sd and interval need two of them, all finite."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


def summarise(values: Sequence[float], confidence: float) -> Summary:
    """Mean, sample standard deviation and Student's interval."""
    n, mean = len(values), float(np.mean(values)) if values else math.nan
    if n < 2 or not math.isfinite(mean):
        return Summary(n, mean, None, None, None)
    sd = float(np.std(values, ddof=1))
    half = _quantile(confidence, n - 1) * sd / math.sqrt(n)
    return Summary(n, mean, sd, mean - half, mean + half)


@dataclass(frozen=True)
class PairedDifference:
    """The difference between two arms over the seeds they share, ours - theirs in the metric's unit.

    Args:
        seed_variance: variance of the mean difference that comes from seeds.
        total_variance: the same from seeds and examples together.
        df: degrees of freedom of Student's t for the interval and p (Welch and Satterthwaite).
        unit: what was resampled besides seeds.
        most_freedom: degrees of freedom that the number of units allows.
        trouble: why there is no interval, where it is not for want of seeds.
    """

    n: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    seed_variance: float
    total_variance: float
    df: float
    confidence: float
    unit: str = "example"
    most_freedom: float = math.inf
    trouble: str = ""

    def chance_below(self, bound: float) -> float | None:
        """p of the one-sided test that the true difference is not above a bound."""
        if self.p is None:
            return None
        return _upper_tail(self.difference - bound, self.total_variance, self.df)

    def mirrored(self) -> PairedDifference:
        """Theirs - ours: a gain where a lower metric is better."""
        low, high = (None if self.high is None else -self.high), (None if self.low is None else -self.low)
        return replace(self, difference=-self.difference, low=low, high=high)


def no_difference(n: int, confidence: float, difference: float = math.nan, trouble: str = "") -> PairedDifference:
    """A comparison that cannot be made."""
    nan = math.nan
    return PairedDifference(n, difference, None, None, None, nan, nan, nan, confidence, trouble=trouble)


@np.errstate(over="ignore", invalid="ignore")
def paired_difference(
    ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, by_seed: Sequence[float], confidence: float
) -> PairedDifference:
    """Mean paired difference with an interval that counts the luck of seeds and of examples.

    The bootstrap gives the variance; Student's t gives the interval, since with few seeds that variance is itself uncertain.

    Args:
        by_seed: the difference of the metric for each seed.
    """
    n, difference = len(by_seed), float(np.mean(by_seed))
    if n < 2:
        return no_difference(n, confidence, difference)
    sample = ours[0]
    if sample.drawn < 1:
        trouble = f"the test split has one {sample.unit} only; two or more are needed"
        return no_difference(n, confidence, difference, trouble)
    seed_variance = float(np.var(by_seed, ddof=1)) / n
    total = max(bootstrap_variance(ours, theirs, metric), seed_variance, sample.least_variance)
    if not math.isfinite(total):
        return no_difference(n, confidence, difference, f"the {title_of(metric)} is too large to be compared")
    df = _freedom(n, seed_variance, total, sample.most_freedom)
    half = _quantile(confidence, df) * math.sqrt(total)
    p = min(1.0, 2 * _upper_tail(abs(difference), total, df))
    low, high = difference - half, difference + half
    return PairedDifference(
        n, difference, low, high, p, seed_variance, total, df, confidence, sample.unit, sample.most_freedom
    )


def _freedom(n: int, seed_variance: float, total_variance: float, most: float = math.inf) -> float:
    """Degrees of freedom of the total variance (Satterthwaite): few where seeds dominate, more where examples do.

    Capped at four times those of the seeds, since a few seeds that agree by chance must not look like many; and two seeds
    say next to nothing about how much seeds matter, so there is no bonus for them at all.
    """
    if n == 2:
        return 1.0
    return min(most, (n - 1) * (min(4.0, (total_variance / seed_variance) ** 2) if seed_variance > 0 else 4.0))


@lru_cache(maxsize=256)  # a report asks for the same few again and again
def _quantile(confidence: float, df: float) -> float:
    return float(stats.t.ppf(0.5 + confidence / 2, df))


def _upper_tail(distance: float, variance: float, df: float) -> float:
    if variance <= 0:
        return 0.0 if distance > 0 else 0.5 if distance == 0 else 1.0
    return float(stats.t.sf(distance / math.sqrt(variance), df))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction; comparisons that were not made stay None and do not count."""
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(made):
        highest = max(highest, min(1.0, p * (len(made) - rank)))
        adjusted[place] = highest
    return adjusted


def seeds_needed(found: PairedDifference, distance: float) -> int | None:
    """Seeds in all at which the interval's half-width would fall below a distance; None if seeds alone cannot do it.

    The luck of examples does not shrink with more seeds; only a larger test set helps there.
    """
    if found.p is None or distance <= 0:
        return None
    one_seed = found.seed_variance * found.n
    examples = max(0.0, found.total_variance - found.seed_variance)
    counts = range(max(2, found.n), MOST_SEEDS + 1)
    totals = [one_seed / n + examples for n in counts]
    freedoms = [_freedom(n, one_seed / n, total, found.most_freedom) for n, total in zip(counts, totals, strict=True)]
    quantiles = stats.t.ppf(0.5 + found.confidence / 2, freedoms)  # all at once: SciPy is slow to begin, not to compute
    tried = zip(counts, totals, quantiles, strict=True)
    return next((n for n, total, quantile in tried if float(quantile) * math.sqrt(total) < distance), None)
