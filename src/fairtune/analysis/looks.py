"""Looks: how sure a verdict must be when verdicts are taken again and again while seeds are added.

Whoever looks five times at 5 % is fooled far more often than 5 % of the time. O'Brien and Fleming's way, as Lan and DeMets
(1983) spend it, gives each look a small share of the risk: next to nothing to the first, most to the last, so that the last
look loses hardly any power. What counts is the numbers of seeds at which verdicts were really taken; they need not be planned.

Differences at two looks are as strongly related as their numbers of seeds say, or more strongly where the luck of examples,
which both share, has a part in them. The levels are for the first, so they err on the side of caution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

if TYPE_CHECKING:
    from scipy.interpolate import PchipInterpolator

Floats = npt.NDArray[np.float64]

LOOKS = (3, 5, 8, 12, 20)
"""Numbers of seeds at which `run --until-decided` takes verdicts."""
MOST = 20
"""Seeds at which all risk is spent, unless a study plans more."""
EXTENSION = 0.05
"""The share of the risk for seeds that were added although none were planned: the planned look has spent the whole of its own.

What they get is added to the risk of the whole study. With a twentieth, 5 % of simulated null studies err (docs/fairness.md), and a
large difference can be shown all the same.
"""
FARTHEST = 9.0
"""Standard deviations beyond which a path cannot be."""
UNREACHABLE = 38.0
"""A quantile whose chance no number can hold."""
GRID = tuple(float(quantile) for quantile in np.arange(1.0, 7.01, 0.25))
"""Risks for which levels are tabulated, as quantiles: from 63 % down to 5e-12."""


def spent(looks: Sequence[int], most: int, risk: float) -> list[float]:
    """The share of the risk that is spent up to each look, of `risk` in all."""
    return [float(_spent(np.array(_quantile(risk)), n / most)) for n in looks]


def nominal_level(looks: Sequence[int], most: int, risk: float) -> float:
    """The two-sided level for the last of some looks, such that all of them together err with the risk at most.

    Args:
        looks: numbers of seeds at which verdicts were taken, increasing.
        most: the number of seeds at which all the risk is spent.
    """
    taken = _checked(looks, most)
    if len(taken) == 1 and taken[0] >= most:
        return risk
    return float(2 * special.ndtr(-_walk(taken, most, (_quantile(risk),)).bounds[0]))


def overall_p(p: float, looks: Sequence[int], most: int) -> float:
    """The smallest overall risk at which a p found at the last of some looks would count; 1 if it never would."""
    taken = _checked(looks, most)
    if taken[-2:-1] >= (most,):
        return 1.0
    if len(taken) == 1:
        return p if taken[0] >= most else min(1.0, 4 * float(special.ndtr(-_quantile(p) * math.sqrt(taken[0] / most))))
    quantiles, found = _quantiles_by_bound(taken, most), -float(special.ndtri(p / 2))
    if quantiles is None or found < quantiles.x[0]:
        return 1.0
    return 4 * float(special.ndtr(-quantiles(min(found, quantiles.x[-1]))))


def repeated_p(p_values: Sequence[float], looks: Sequence[int], most: int) -> float:
    """One p for all looks so far, valid however often one looks; what was shown once stays shown.

    Args:
        p_values: the plain p of each look.
    """
    taken = tuple(looks)
    return min(overall_p(p, taken[: place + 1], most) for place, p in enumerate(p_values))


def _quantile(risk: float) -> float:
    """The normal quantile from which a risk is spent; half the risk belongs to each side."""
    return -float(special.ndtri(risk / 4))


def _spent(quantiles: Floats, share: float) -> Floats:
    return np.asarray(4 * special.ndtr(-quantiles / math.sqrt(min(1.0, share))))


@lru_cache(maxsize=256)
def _quantiles_by_bound(looks: tuple[int, ...], most: int) -> PchipInterpolator | None:
    """The table by which levels are turned back into risks; nearly straight on the scale of quantiles."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and `plan` never looks twice

    bounds = _walk(looks, most, GRID).bounds
    known = bounds < FARTHEST  # beyond that nothing was followed; such a p counts as the smallest that was
    return PchipInterpolator(bounds[known], np.array(GRID)[known]) if known.sum() > 1 else None


def _checked(looks: Sequence[int], most: int) -> tuple[int, ...]:
    taken = tuple(looks)
    if not taken or taken[0] < 1 or most < 1 or any(b <= a for a, b in itertools.pairwise(taken)):
        raise ValueError(f"looks must be increasing numbers of seeds, not {taken} of {most}")
    return taken


@dataclass(frozen=True)
class _Walk:
    """Where a Brownian path can be that no look has stopped, for some risks at once.

    Args:
        bounds: two-sided normal quantiles that the last look must reach, by risk.
        places: distances from 0 on the scale of sums over seeds, [risks, places].
        chances: chance to be there, [risks, places].
    """

    bounds: Floats
    places: Floats
    chances: Floats


@lru_cache(maxsize=256)
def _walk(looks: tuple[int, ...], most: int, quantiles: tuple[float, ...]) -> _Walk:
    """One look more (Armitage, McPherson and Rowe 1969): the chances of the look before are carried on by a normal step."""
    n, strict = looks[-1] / most, np.array(quantiles)
    if len(looks) == 1:
        bounds = -special.ndtri(_spent(strict, n) / 2)
        places, weights = _places(bounds * math.sqrt(n), n, n)
        return _Walk(bounds, places, weights * _folded_density(places, 0.0, n))
    past, before = _walk(looks[:-1], most, quantiles), looks[-2] / most
    if before >= 1:
        return _Walk(np.full(len(strict), math.inf), past.places, past.chances)
    step = n - before
    edges = _solve_edges(past, _spent(strict, n) - _spent(strict, before), n, step)
    places, weights = _places(edges, n, step)
    steps = _folded_density(places[:, :, None], past.places[:, None, :], step)
    return _Walk(edges / math.sqrt(n), places, weights * (steps @ past.chances[:, :, None])[:, :, 0])


def _solve_edges(past: _Walk, to_spend: Floats, n: float, step: float) -> Floats:
    """How far from 0 a path must be at this look so that just the risk to be spent leaves here; by bisection."""
    low, high = np.zeros(len(to_spend)), np.full(len(to_spend), UNREACHABLE * math.sqrt(n))
    for _ in range(50):
        edges = (low + high) / 2
        beyond = special.ndtr((past.places - edges[:, None]) / math.sqrt(step))
        beyond += special.ndtr((-past.places - edges[:, None]) / math.sqrt(step))
        too_many = (beyond * past.chances).sum(axis=1) > to_spend
        low, high = np.where(too_many, edges, low), np.where(too_many, high, edges)
    return high


def _places(edges: Floats, n: float, step: float) -> tuple[Floats, Floats]:
    """Gauss and Legendre's places and weights between 0 and each edge, dense enough for the narrowest step before or after."""
    edges = np.minimum(edges, FARTHEST * math.sqrt(n))
    count = int(np.clip(4 * edges.max() / math.sqrt(step), 40, 160))
    places, weights = special.roots_legendre(count)
    return edges[:, None] * (1 + places) / 2, edges[:, None] * weights / 2


def _folded_density(places: Floats, start: Floats | float, variance: float) -> Floats:
    """Density of |start + step|; both sides of 0 are alike."""
    ahead, behind = np.exp(-((places - start) ** 2) / 2 / variance), np.exp(-((places + start) ** 2) / 2 / variance)
    return np.asarray((ahead + behind) / math.sqrt(2 * math.pi * variance))
