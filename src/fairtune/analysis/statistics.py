"""Means, intervals, paired differences and corrections for many comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from fairtune.analysis.resampling import SATTERTHWAITE, Scored, bootstrap_variance
from fairtune.settings.metrics import METRICS, title_of

MOST_TIMES, OWN_SAMPLES = 4.0, 1.0
"""Degrees of freedom as a multiple of those of the seeds, at most: usually, and where each seed has its own training sample."""


@dataclass(frozen=True)
class Summary:
    """One arm's figures over its seeds; sd and interval need two of them, all finite."""

    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


def summarise(values: Sequence[float], confidence: float) -> Summary:
    """Mean, sample standard deviation and Student's interval of any numbers."""
    found, variance = _moments(values)
    if found.sd is None:
        return found
    half = _quantile(confidence, found.n - 1) * math.sqrt(variance)
    return replace(found, low=found.mean - half, high=found.mean + half)


def summarise_arm(
    values: Sequence[float], variance: float, sample: Scored, bounds: tuple[float, float], confidence: float,
    most_times: float = MOST_TIMES,
) -> Summary:  # fmt: skip
    """An arm's figures with an interval of its mean that counts the luck of seeds and of examples, inside the metric's bounds.

    Args:
        variance: of the mean, from seeds and examples together, by the bootstrap.
        sample: what one of the runs scored.
        most_times: see `freedom`.
    """
    found, seed_variance = _moments(values)
    if found.sd is None or sample.drawn < 1 or sample.most_freedom < 1:
        return found
    total = max(variance, seed_variance, sample.least_variance)
    if not math.isfinite(total):
        return found
    df = freedom(found.n, seed_variance, total, sample.most_freedom, most_times, sample.freedom_power)
    width = _quantile(confidence, df) * math.sqrt(total)
    low, high = _bounded(found.mean, width, bounds, sample.units)
    return replace(found, low=low, high=high)


def _moments(values: Sequence[float]) -> tuple[Summary, float]:
    """The figures without an interval, and the variance of their mean."""
    n, mean = len(values), float(np.mean(values)) if values else math.nan
    if n < 2 or not math.isfinite(mean):
        return Summary(n, mean, None, None, None), math.nan
    sd = float(np.std(values, ddof=1))
    return Summary(n, mean, sd, None, None), sd**2 / n


def _bounded(mean: float, width: float, bounds: tuple[float, float], units: int) -> tuple[float, float]:
    """An interval about a mean that no bound cuts off: symmetric on the arcsine scale of a share, on the log scale of a loss.

    Args:
        width: half of the interval that knows no bounds.
        units: examples; a share of none or of all of them is taken for half an example.
    """
    lowest, highest = bounds
    if math.isinf(highest):
        factor = math.exp(width / mean) if mean > 0 else 1.0
        return max(lowest, mean / factor), mean * factor
    span = highest - lowest
    share = (mean - lowest) / span
    least = 0.5 / (units + 1)
    inner = min(max(share, least), 1 - least)
    middle, half = math.asin(math.sqrt(inner)), width / span / (2 * math.sqrt(inner * (1 - inner)))
    ends = (max(0.0, middle - half), min(math.pi / 2, middle + half))
    low, high = (lowest + span * math.sin(end) ** 2 for end in ends)
    return min(low, mean), max(high, mean)


@dataclass(frozen=True)
class PairedDifference:
    """The difference between two arms over the seeds they share, ours - theirs in the metric's unit.

    Args:
        seed_variance: variance of the mean difference that comes from seeds.
        total_variance: the same from seeds and examples together.
        df: degrees of freedom of Student's t for the interval and p (Welch and Satterthwaite).
        unit: what was resampled besides seeds.
        most_freedom: degrees of freedom that the number of units allows.
        most_times: see `freedom`.
        trouble: why there is no interval, where it is not for want of seeds.
        by_seed: the difference of each seed.
        limits: that no difference of this metric can be beyond.
        units: test examples or documents there are.
        freedom_power: see `freedom`.
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
    by_seed: tuple[float, ...] = ()
    limits: tuple[float, float] = (-math.inf, math.inf)
    units: int | None = None
    most_times: float = MOST_TIMES
    freedom_power: float = SATTERTHWAITE

    def interval(self, risk: float) -> tuple[float | None, float | None]:
        """Its interval at another risk, such as one that a family of comparisons shares."""
        if self.p is None:
            return None, None
        if risk <= 0:
            return self.limits
        return _clipped(self.difference, _quantile(1 - risk, self.df) * math.sqrt(self.total_variance), self.limits)

    def chance_below(self, bound: float) -> float | None:
        """p of the one-sided test that the true difference is not above a bound."""
        if self.p is None:
            return None
        return _upper_tail(self.difference - bound, self.total_variance, self.df)

    def mirrored(self) -> PairedDifference:
        """Theirs - ours: a gain where a lower metric is better."""
        low, high = (None if self.high is None else -self.high), (None if self.low is None else -self.low)
        by_seed, limits = tuple(-one for one in self.by_seed), (-self.limits[1], -self.limits[0])
        return replace(self, difference=-self.difference, low=low, high=high, by_seed=by_seed, limits=limits)


def no_difference(
    n: int, confidence: float, difference: float = math.nan, trouble: str = "", by_seed: Sequence[float] = ()
) -> PairedDifference:
    """A comparison that cannot be made."""
    nan = math.nan
    return PairedDifference(
        n, difference, None, None, None, nan, nan, nan, confidence, trouble=trouble, by_seed=tuple(by_seed)
    )


@np.errstate(over="ignore", invalid="ignore")
def paired_difference(
    ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, by_seed: Sequence[float], confidence: float,
    most_times: float = MOST_TIMES, base: float | None = None,
) -> PairedDifference:  # fmt: skip
    """Mean paired difference with an interval that counts the luck of seeds and of examples.

    The bootstrap gives the variance; Student's t gives the interval, since with few seeds that variance is itself uncertain.

    Args:
        by_seed: the difference of the metric for each seed.
        most_times: see `freedom`.
        base: their mean, which no metric that has only a lower bound can fall by more than.
    """
    n, difference = len(by_seed), float(np.mean(by_seed))
    if n < 2:
        return no_difference(n, confidence, difference, by_seed=by_seed)
    sample = ours[0]
    if sample.drawn < 1:
        trouble = f"the test split has one {sample.unit} only; two or more are needed"
        return no_difference(n, confidence, difference, trouble)
    if sample.most_freedom < 1:
        trouble = f"{title_of(metric)} takes two test {sample.unit}s of each class, and there are fewer"
        return no_difference(n, confidence, difference, trouble)
    seed_variance = float(np.var(by_seed, ddof=1)) / n
    total = max(bootstrap_variance(ours, theirs, metric), seed_variance, sample.least_variance)
    if not math.isfinite(total):
        return no_difference(n, confidence, difference, f"the {title_of(metric)} is too large to be compared")
    bounds = METRICS[metric].bounds
    span = bounds[1] - bounds[0]
    limits = (-span, span)
    if METRICS[metric].ratios or math.isinf(span):
        limits = (-math.inf, math.inf) if METRICS[metric].ratios or base is None else (bounds[0] - base, math.inf)
    limited = (sample.most_freedom, most_times, sample.freedom_power)
    found = _tested(by_seed, seed_variance, total, confidence, sample.unit, limited, limits)
    return replace(found, units=sample.units)


def _tested(
    by_seed: Sequence[float], seed_variance: float, total: float, confidence: float, unit: str,
    limited: tuple[float, float, float], limits: tuple[float, float],
) -> PairedDifference:  # fmt: skip
    n, difference = len(by_seed), float(np.mean(by_seed))
    most, times, power = limited
    df = freedom(n, seed_variance, total, *limited)
    low, high = _clipped(difference, _quantile(confidence, df) * math.sqrt(total), limits)
    p = min(1.0, 2 * _upper_tail(abs(difference), total, df))
    return PairedDifference(
        n, difference, low, high, p, seed_variance, total, df, confidence, unit, most,
        by_seed=tuple(by_seed), limits=limits, most_times=times, freedom_power=power,
    )  # fmt: skip


def with_counted(found: PairedDifference, others: Sequence[float]) -> PairedDifference:
    """The same comparison with the differences of further seeds, of which there are no predictions.

    The luck of examples is taken to be that of the seeds that have some.
    """
    if found.p is None or not others:
        return found
    by_seed = [*found.by_seed, *others]
    seed_variance = float(np.var(by_seed, ddof=1)) / len(by_seed)
    total = seed_variance + max(0.0, found.total_variance - found.seed_variance)
    limited = (found.most_freedom, found.most_times, found.freedom_power)
    counted = _tested(by_seed, seed_variance, total, found.confidence, found.unit, limited, found.limits)
    return replace(counted, units=found.units)


def _clipped(middle: float, half: float, limits: tuple[float, float]) -> tuple[float, float]:
    return max(limits[0], middle - half), min(limits[1], middle + half)


def freedom(
    n: int,
    seed_variance: float,
    total_variance: float,
    most: float = math.inf,
    most_times: float = MOST_TIMES,
    power: float = SATTERTHWAITE,
) -> float:
    """Degrees of freedom of the total variance (Satterthwaite): few where seeds dominate, more where examples do.

    Capped at four times those of the seeds, since a few seeds that agree by chance must not look like many; and two seeds
    say next to nothing about how much seeds matter, so there is no bonus for them at all. Nor is there where each seed draws
    its own training sample, since then seeds matter most.

    Args:
        most_times: those of the seeds that there are at most.
        power: of the ratio of variances by which they grow; Satterthwaite's would be right if the variance of seeds were known.
    """
    if n == 2:
        return 1.0
    grown = (total_variance / seed_variance) ** power if seed_variance > 0 else math.inf
    return min(most, (n - 1) * min(most_times, grown))


@lru_cache(maxsize=256)  # a report asks for the same few again and again
def _quantile(confidence: float, df: float) -> float:
    return float(special.stdtrit(df, 0.5 + confidence / 2))


def _upper_tail(distance: float, variance: float, df: float) -> float:
    if variance <= 0:
        return 0.0 if distance > 0 else 0.5 if distance == 0 else 1.0
    return float(special.stdtr(df, -distance / math.sqrt(variance)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction; comparisons that were not made stay None and do not count."""
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(made):
        highest = max(highest, min(1.0, p * (len(made) - rank)))
        adjusted[place] = highest
    return adjusted
