"""Metrics that no decision line touches: how scores rank the examples, and how good the probabilities are that they stand for.

Each is prepared from labels and scores and then gives the figure of any weighting of the examples, many weightings at a time:
a bootstrap asks for thousands. Rankings are sorted once for all of them, and the rest are sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Weighted = Callable[[Floats], Floats]
"""From weights [draws, examples] to figures [draws]; NaN of a draw that has no two classes to tell apart."""

BINS = 15
"""Of confidence, equally wide, in which calibration is looked at; as in Guo and others (2017)."""
LEAST = float(np.log(np.finfo(np.float64).eps))
"""Logarithm of the least probability that counts, as in scikit-learn: one example must not make a mean infinite."""
AT_ONCE = 2**19
"""Weights that are sorted and added up together: what fits caches, so that memory stays bounded too."""


@dataclass(frozen=True)
class ScoredExamples:
    """Labels with scores [examples, classes]: logits, or log-probabilities."""

    labels: Labels
    scores: npt.NDArray[np.floating]

    @property
    def classes(self) -> int:
        return int(self.scores.shape[1])

    @cached_property
    def are_numbers(self) -> bool:
        """Whether every score is one; a log-probability may be minus infinity, but not all of a row."""
        highest = self.scores.max(axis=1) if self.scores.size else np.zeros(0)
        return bool(np.isfinite(highest).all()) and not bool(np.isnan(self.scores).any())

    @cached_property
    def log_probabilities(self) -> Floats:
        """Of every class, none below `LEAST`."""
        scores = self.scores.astype(np.float64)
        shifted = scores - scores.max(axis=1, keepdims=True)
        whole = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return np.asarray(np.maximum(shifted - whole, LEAST))

    @property
    def present(self) -> Labels:
        """The classes that occur."""
        return np.flatnonzero(np.bincount(self.labels, minlength=self.classes))

    def log_odds(self, number: int) -> Floats:
        """How much a class is preferred to all others; finer than its probability, which rounds to 0 and 1."""
        scores = self.scores.astype(np.float64)
        if self.classes == 2:
            with np.errstate(invalid="ignore"):
                return np.asarray(scores[:, number] - scores[:, 1 - number])
        others = np.sort(np.delete(scores, number, axis=1), axis=1)  # equal odds are then equal to the last bit
        highest = others[:, -1]
        top = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(scores[:, number] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))

    @cached_property
    def rankings(self) -> tuple[_Ranking, ...]:
        """One for two classes, by the second; else one for each class that occurs against all others."""
        present = self.present
        if len(present) < 2:
            return ()
        numbers = (1,) if self.classes == 2 else present.tolist()
        return tuple(_rank(self.log_odds(number), self.labels == number) for number in numbers)


@dataclass(frozen=True)
class _Ranking:
    """Examples of a class and all others, each from the highest score down, and how the two lie among each other.

    Args:
        hits, misses: which examples are of the class, and which are not.
        above, level: of each other example, how many of the class are ranked above it, and how many above it or beside it.
        taken_hits, taken_misses: of each example of the class, how many of either are ranked above it or beside it.
    """

    hits: Places
    misses: Places
    above: Places
    level: Places
    taken_hits: Places
    taken_misses: Places


def _rank(values: Floats, members: npt.NDArray[np.bool_]) -> _Ranking:
    order = np.argsort(-values, kind="stable")
    hits, misses = order[members[order]], order[~members[order]]
    up, other = -values[hits], -values[misses]
    above, level = (np.searchsorted(up, other, side=side) for side in ("left", "right"))
    return _Ranking(
        hits, misses, above, level, np.searchsorted(up, up, side="right"), np.searchsorted(other, up, side="right")
    )


def _macro(examples: ScoredExamples, figure: Callable[[_Ranking, Floats], Floats]) -> Weighted:
    """The mean over rankings of a figure of weights [examples, draws]; of a draw, over the classes that it holds."""

    def compute(weights: Floats) -> Floats:
        draws, units = weights.shape
        columns = np.ascontiguousarray(weights.T)  # rows are then moved and added up as a whole
        total, defined = np.zeros(draws), np.zeros(draws)
        size = max(1, AT_ONCE // max(1, units))
        for ranking in examples.rankings if examples.are_numbers else ():
            for start in range(0, draws, size):
                part = slice(start, start + size)
                found = figure(ranking, columns[:, part])
                known = ~np.isnan(found)
                total[part] += np.where(known, found, 0.0)
                defined[part] += known
        with np.errstate(invalid="ignore"):
            return np.where(defined > 0, total / defined, np.nan)

    return compute


def _running(weights: Floats, places: Places) -> tuple[Floats, Floats]:
    """Weights of some examples, and their sums [0 to all of them, draws]."""
    own = np.take(weights, places, axis=0)
    sums = np.zeros((len(places) + 1, weights.shape[1]))
    np.cumsum(own, axis=0, out=sums[1:])
    return own, sums


def _sum_of_products(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _divide(above: Floats, below: Floats, defined: npt.NDArray[np.bool_]) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=defined))


def roc_auc(examples: ScoredExamples) -> Weighted:
    """How often an example of the class is ranked above one that is not; equal scores count half."""

    def area(ranking: _Ranking, weights: Floats) -> Floats:
        _, sums = _running(weights, ranking.hits)
        misses = np.take(weights, ranking.misses, axis=0)
        won = _sum_of_products(misses, np.take(sums, ranking.above, axis=0))
        if (ranking.above != ranking.level).any():
            won = (won + _sum_of_products(misses, np.take(sums, ranking.level, axis=0))) / 2
        pairs = sums[-1] * misses.sum(axis=0)
        return _divide(won, pairs, pairs > 0)

    return _macro(examples, area)


def average_precision(examples: ScoredExamples) -> Weighted:
    """Precision at every score down to which examples are called the class, weighted by the recall that it adds."""

    def area(ranking: _Ranking, weights: Floats) -> Floats:
        hits, sums = _running(weights, ranking.hits)
        _, others = _running(weights, ranking.misses)
        right = np.take(sums, ranking.taken_hits, axis=0)
        taken = right + np.take(others, ranking.taken_misses, axis=0)
        np.divide(right, taken, out=right, where=taken > 0)  # where nothing is taken, nothing is right
        return _divide(_sum_of_products(hits, right), sums[-1], (sums[-1] > 0) & (others[-1] > 0))

    return _macro(examples, area)


def _mean(examples: ScoredExamples, values: Callable[[], Floats]) -> Weighted:
    """The mean of what each example has of its own; NaN where scores are no numbers."""
    own = values() if examples.are_numbers else np.full(len(examples.labels), np.nan)
    return lambda weights: np.asarray(weights @ own / weights.sum(axis=1))


def log_loss(examples: ScoredExamples) -> Weighted:
    """Minus the logarithm of the probability that the right class got, in nats."""
    rows = np.arange(len(examples.labels))
    return _mean(examples, lambda: -examples.log_probabilities[rows, examples.labels])


def brier(examples: ScoredExamples) -> Weighted:
    """Half the squared distance between the probabilities and the truth; of two classes that is the usual Brier score."""
    truth = np.eye(examples.classes)[examples.labels]
    return _mean(examples, lambda: np.square(np.exp(examples.log_probabilities) - truth).sum(axis=1) / 2)


def calibration_error(examples: ScoredExamples) -> Weighted:
    """How far confidence in the likeliest class is from how often it is right: the mean over bins, by their size."""
    if not examples.are_numbers:
        return lambda weights: np.full(len(weights), np.nan)
    confidence = np.exp(examples.log_probabilities.max(axis=1))
    right = examples.scores.argmax(axis=1) == examples.labels
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gaps = np.zeros((len(bins), BINS))
    gaps[np.arange(len(bins)), bins] = right - confidence
    return lambda weights: np.asarray(np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1))
