"""Power on paper: what a number of seeds can show, and how many more would settle what is open.

The model is that of the comparison itself. A mean difference varies by the luck of seeds, which shrinks with their number, and
by the luck of examples, which does not; the variance of seeds is estimated from those same few seeds, so the t that a
verdict needs varies with it. All of that is summed here, with the same degrees of freedom as the verdict's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from fairtune.analysis.looks import MOST, nominal_level
from fairtune.analysis.resampling import SATTERTHWAITE
from fairtune.analysis.statistics import MOST_TIMES, PairedDifference, freedom

Floats = npt.NDArray[np.float64]
LevelAt = Callable[[int], float]
"""The corrected two-sided level that a verdict must reach with so many seeds."""

POWER = 0.8
HARDLY = 0.2
"""Chance below which it is said that nothing will show."""
MOST_ADVISED = 100
"""Nobody is advised to train more seeds than this."""
HIDDEN = 3
"""Of a difference found with n seeds, n / (n + this) is counted upon: the rest may be luck (calibrated by simulation)."""
POINTS = 80
"""Estimates of the seeds' variance, equally likely, over which chances are averaged."""
RUNS_DISAGREE = 0.4
"""How often two runs differ on an example, as a share of how often two unrelated ones of their accuracy would."""
ARMS_DISAGREE = 0.1
"""The part of that which belongs to the arms rather than to the runs, so that more seeds do not even it out."""
USUAL_ACCURACY = 0.85

SEEDS, EXAMPLES, MARGIN, MANY = "seeds", "examples", "margin", "many"


@dataclass(frozen=True)
class Noise:
    """Where the luck of a paired difference comes from.

    Args:
        one_seed: variance of the difference of a single seed.
        examples: variance that stays however many seeds there are.
        most_freedom: degrees of freedom that the number of units allows.
        most_times: those of the seeds that there are at most.
        freedom_power: see `statistics.freedom`.
    """

    one_seed: float
    examples: float
    most_freedom: float = math.inf
    most_times: float = MOST_TIMES
    freedom_power: float = SATTERTHWAITE


@dataclass(frozen=True)
class Outlook:
    """What it would take to settle a comparison.

    Args:
        kind: SEEDS (low to high of them in all), EXAMPLES (so many, with `high` seeds), MARGIN (the difference is near zero:
            only a margin can be shown), or MANY (more than MOST_ADVISED seeds).
        low: seeds in all if the difference found is the true one.
        high: seeds in all if it is smaller, as differences that few seeds show tend to be; the number to follow.
    """

    kind: str
    low: int | None = None
    high: int | None = None
    examples: int | None = None


def measured_noise(found: PairedDifference) -> Noise:
    """Noise as one comparison shows it."""
    return Noise(
        found.seed_variance * found.n,
        max(0.0, found.total_variance - found.seed_variance),
        found.most_freedom,
        found.most_times,
        found.freedom_power,
    )


def expected_noise(
    seed_sd: float, examples: int, accuracy: float | None = None, measured_on: int | None = None
) -> Noise:
    """Noise of an accuracy's difference from what is known of other runs; unrelated arms.

    Args:
        seed_sd: standard deviation of an arm's accuracy over seeds, as a share of one.
        accuracy: expected of the arms, as a share of one.
        measured_on: the number of test examples on which the standard deviation was observed, whose luck is part of it; None
            if it is that of the accuracy on endlessly many.
    """
    hits = USUAL_ACCURACY if accuracy is None else accuracy
    disagreement = RUNS_DISAGREE * 2 * hits * (1 - hits)
    # What a run does on single examples that its sister runs do not: half of the disagreement belongs to each of the two.
    seeds = seed_sd**2 - (disagreement / 2 / measured_on if measured_on else 0.0)
    return Noise(2 * max(0.0, seeds) + disagreement / examples, ARMS_DISAGREE * disagreement / examples)


def chance_to_show(noise: Noise, n: int, distance: float, level: float) -> float:
    """Chance of a verdict with n seeds if the true value lies so far beyond the line that is tested."""
    if n < 2 or level <= 0:
        return 0.0
    return float(special.ndtr((distance - _needed(noise, n, level)) / _deviation(noise, n)).mean())


def detectable(noise: Noise, n: int, level: float, power: float = POWER) -> float:
    """The difference (or the distance from a margin) that n seeds show with this chance."""
    if n < 2 or level <= 0:
        return math.inf
    needed, deviation = _needed(noise, n, level), _deviation(noise, n)
    low, high = 0.0, float(needed.max()) + 9 * deviation
    for _ in range(50):
        middle = (low + high) / 2
        enough = special.ndtr((middle - needed) / deviation).mean() >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def seeds_to_confirm(
    noise: Noise, margin: float, level_at: LevelAt, power: float = POWER, least: int = 2
) -> int | None:
    """The least number of seeds in all that shows "not inferior" with this chance where there is no difference.

    As for any distance from a line: None if MOST_ADVISED seeds do not.
    """

    def enough(n: int) -> bool:
        return chance_to_show(noise, n, margin, level_at(n)) >= power

    low, high = least - 1, MOST_ADVISED
    if margin <= 0 or not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def level_after(looks: tuple[int, ...], comparisons: int, risk: float, most: int = MOST) -> LevelAt:
    """The level of the next look if some were taken before, Holm's hardest step included; none: the fixed design."""

    def level_at(n: int) -> float:
        return _level((*(look for look in looks if look < n), n), most, risk / comparisons)

    return level_at if looks else lambda _: risk / comparisons


def seeds_to_settle(
    found: PairedDifference,
    level_at: LevelAt,
    margin: float | None = None,
    units: int | None = None,
    power: float = POWER,
) -> Outlook | None:
    """What it would take to settle a comparison that is open; None if nothing is known about it.

    Of the comparisons that get a number, few would be settled by it if the difference were taken as found: those that look
    promising after three seeds do so by luck in part. The caution here is calibrated by simulation (benchmarks/fairness.py).

    Args:
        found: a gain: mirrored where a lower metric is better.
        units: test examples (or documents) there are.
    """
    if found.p is None or found.n < 2:
        return None
    noise, kept = measured_noise(found), found.n / (found.n + HIDDEN)
    cautious = replace(noise, one_seed=noise.one_seed * (found.n + 1) / (found.n - 1))  # few seeds may agree by luck
    distances = [abs(found.difference)] + ([] if margin is None else [abs(found.difference + margin)])
    clear = [distance for distance in distances if distance > _deviation(cautious, found.n)]
    if not clear:
        return Outlook(MARGIN if margin is None else MANY)
    least = found.n + 1
    highs = [(seeds_to_confirm(cautious, kept * distance, level_at, power, least), distance) for distance in clear]
    reached = [(high, distance) for high, distance in highs if high is not None]
    if reached:
        high, distance = min(reached)
        low = seeds_to_confirm(noise, distance, level_at, power, least)
        return Outlook(SEEDS, min(high, low or high), high)
    return _limited_by_examples(cautious, kept * max(clear), level_at, units, power)


def _limited_by_examples(noise: Noise, distance: float, level_at: LevelAt, units: int | None, power: float) -> Outlook:
    for seeds in (MOST, MOST_ADVISED):
        level = level_at(seeds)
        if units is None or chance_to_show(replace(noise, examples=0.0), seeds, distance, level) < power:
            continue
        low, high = 0.0, 1.0  # the share of their luck that may remain
        for _ in range(30):
            middle = (low + high) / 2
            fits = chance_to_show(replace(noise, examples=noise.examples * middle), seeds, distance, level) >= power
            low, high = (middle, high) if fits else (low, middle)
        return Outlook(EXAMPLES, high=seeds, examples=_round_up(units / low) if low > 0 else None)
    return Outlook(MANY)


def _needed(noise: Noise, n: int, level: float) -> Floats:
    """How large a difference must be found to be, for each variance of seeds that might be estimated."""
    guesses = noise.one_seed / n * _spread(n)
    totals = guesses + noise.examples
    limits = (noise.most_freedom, noise.most_times, noise.freedom_power)
    df = [freedom(n, guess, total, *limits) for guess, total in zip(guesses, totals, strict=True)]
    return np.asarray(-special.stdtrit(df, level / 2) * np.sqrt(totals))


def _deviation(noise: Noise, n: int) -> float:
    return math.sqrt(max(noise.one_seed / n + noise.examples, 1e-18))


@lru_cache(maxsize=256)
def _spread(n: int) -> Floats:
    """Estimates of a variance of 1 from n seeds, equally likely."""
    return np.asarray(special.chdtri(n - 1, 1 - (np.arange(POINTS) + 0.5) / POINTS) / (n - 1))


@lru_cache(maxsize=4096)
def _level(looks: tuple[int, ...], most: int, risk: float) -> float:
    return nominal_level(looks, most, risk)


def _round_up(count: float) -> int:
    """Two digits are all that is known."""
    unit = int(10 ** max(0, math.floor(math.log10(count)) - 1))
    return math.ceil(count / unit) * unit
