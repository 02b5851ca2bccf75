"""What luck alone does to printed figures: the luck of the test set, of seeds, and of picking the best.

Nothing is known here but the figures, the number of test examples and of seeds, and how much seeds differ. How often two models err
on the same examples is not printed, so that what pairing would give is a range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from fairtune.analysis.power import POWER, RUNS_DISAGREE

LEVEL = 0.05
Z = float(special.ndtri(1 - LEVEL / 2))
MOST_SEEDS_TOLD = 1000
GRID = 4001


@dataclass(frozen=True)
class PairedRange:
    """What an exact McNemar test of two single runs could give, over all the ways in which their mistakes may coincide.

    Args:
        fewest: examples on which the two differ, if every one of them speaks for the same model.
        most: if they err on different examples wherever that is possible.
        usual: if they coincide as those of two runs usually do.
        enough: the most on which they may differ so that p stays below 5 %; None if even the fewest are too many.
    """

    fewest: int
    most: int
    usual: int
    enough: int | None
    least_p: float
    usual_p: float
    most_p: float


def wilson(share: float, examples: int, z: float = Z) -> tuple[float, float]:
    """Wilson's interval of a share."""
    middle = (share + z**2 / (2 * examples)) / (1 + z**2 / examples)
    half = z / (1 + z**2 / examples) * math.sqrt(share * (1 - share) / examples + z**2 / (4 * examples**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def unpaired_error(first: float, second: float, examples: int) -> float:
    """Standard error of the difference of two shares on so many examples each, as if the examples were not the same.

    One right and one wrong answer are added to each (Agresti and Caffo), so that a share of 0 or 1 is not taken for certain.
    """
    shares = [(share * examples + 1) / (examples + 2) for share in (first, second)]
    return math.sqrt(sum(share * (1 - share) for share in shares) / (examples + 2))


def mcnemar(differing: int, net: int) -> float:
    """The exact two-sided p of so many examples on which two models differ.

    Args:
        net: by how many more of them one model is right.
    """
    if differing == 0 or net == 0:
        return 1.0
    return min(1.0, 2 * float(special.bdtrc((differing + abs(net)) // 2 - 1, differing, 0.5)))


def paired_range(first: int, second: int, examples: int) -> PairedRange:
    """The range of McNemar tests of two runs with so many correct answers each."""
    net = abs(first - second)
    most = 2 * min(max(first, second), examples - min(first, second)) - net
    share = (first * (examples - second) + second * (examples - first)) / examples**2
    usual = net + 2 * round(max(0.0, RUNS_DISAGREE * share * examples - net) / 2)
    usual = min(max(usual, net), most)
    low, high = 0, (most - net) // 2  # p grows with each further pair of examples that cancel out
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if mcnemar(net + 2 * middle, net) < LEVEL else (low, middle - 1)
    enough = net + 2 * low if mcnemar(net + 2 * low, net) < LEVEL else None
    return PairedRange(net, most, usual, enough, mcnemar(net, net), mcnemar(usual, net), mcnemar(most, net))


def paired_error(share: float, net: float, examples: int) -> float:
    """Standard error of a difference if the two models differ on this share of examples."""
    return math.sqrt(max(0.0, share - net**2) / examples)


def seed_error(sds: tuple[float, float], seeds: tuple[int, int]) -> float:
    """Standard error of the difference of two means over seeds."""
    return math.sqrt(sum(sd**2 / k for sd, k in zip(sds, seeds, strict=True)))


def critical(freedom: float) -> float:
    """How many standard errors a difference must have at 5 %, two-sided; freedom may be infinite."""
    return Z if math.isinf(freedom) else float(special.stdtrit(freedom, 1 - LEVEL / 2))


def chance_to_see(difference: float, sd: float, seeds: int) -> float:
    """Power of an unpaired t-test of two arms with so many seeds each, for the true sign."""
    if seeds < 2:
        return 0.0
    shift = difference / (sd * math.sqrt(2 / seeds)) if sd else math.inf
    if shift > 30:  # where the distribution's series no longer helps, nothing is open either
        return 1.0
    freedom = 2 * (seeds - 1)
    return float(1 - special.nctdtr(freedom, shift, critical(freedom)))


def seeds_to_see(difference: float, sd: float, power: float = POWER) -> int | None:
    """Seeds per arm with which an unpaired t-test sees a difference with this chance; None beyond MOST_SEEDS_TOLD."""
    low, high = 1, MOST_SEEDS_TOLD
    if difference <= 0 or chance_to_see(difference, sd, high) < power:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance_to_see(difference, sd, middle) >= power else (middle, high)
    return high


def smallest_seen(sd: float, seeds: int, power: float = POWER) -> float:
    """The difference that so many seeds per arm show with this chance; of one run each, if the deviation is known."""
    if seeds < 2:
        return (Z + float(special.ndtri(power))) * sd * math.sqrt(2)
    low, high = 0.0, 100 * sd
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance_to_see(middle, sd, seeds) >= power else (middle, high)
    return high


def best_of(count: int) -> float:
    """By how many standard deviations the best of so many draws of one normal distribution is above their mean, on average."""
    if count == 1:
        return 0.0
    points = np.linspace(-9.0, 9.0, GRID)
    density = count * np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi) * special.ndtr(points) ** (count - 1)
    return float(np.sum(points * density) * (points[1] - points[0]))
