"""Metrics that no decision line touches: how scores rank the examples, and how good the probabilities are that they stand for.

Each is prepared from labels and scores and then gives the figure of any weighting of the examples, many weightings at a time:
a bootstrap asks for thousands. Rankings are sorted once for all of them, and the rest are sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
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
        others = np.delete(scores, number, axis=1)
        highest = others.max(axis=1)
        top = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(scores[:, number] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))


@dataclass(frozen=True)
class _Ranking:
    """Examples from the highest score down.

    Args:
        starts: where each group of equal scores begins; None where no two are equal.
        hits: which of them, in this order, are of the class.
    """

    order: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp] | None
    hits: Floats

    def counted(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights by group of equal scores, [draws, groups]: of the class, and of all."""
        both = weights[:, self.order]
        hits = both * self.hits
        if self.starts is None:
            return hits, both
        return np.add.reduceat(hits, self.starts, axis=1), np.add.reduceat(both, self.starts, axis=1)


def _rank(values: Floats, members: npt.NDArray[np.bool_]) -> _Ranking:
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    return _Ranking(order, None if len(starts) == len(order) else starts, members[order].astype(np.float64))


def _rankings(examples: ScoredExamples) -> Iterator[_Ranking]:
    """One for two classes, by the second; else one for each class that occurs against all others."""
    present = examples.present
    if len(present) < 2:
        return
    for number in (1,) if examples.classes == 2 else present.tolist():
        yield _rank(examples.log_odds(number), examples.labels == number)


def _macro(examples: ScoredExamples, figure: Callable[[Floats, Floats], Floats]) -> Weighted:
    """The mean over rankings of a figure of `_Ranking.counted`; of a draw, over the classes that it holds."""

    def compute(weights: Floats) -> Floats:
        total, defined = np.zeros(len(weights)), np.zeros(len(weights))
        rows = max(1, AT_ONCE // max(1, weights.shape[1]))
        for ranking in _rankings(examples) if examples.are_numbers else ():
            for start in range(0, len(weights), rows):
                part = slice(start, start + rows)
                found = figure(*ranking.counted(weights[part]))
                known = ~np.isnan(found)
                total[part] += np.where(known, found, 0.0)
                defined[part] += known
        with np.errstate(invalid="ignore"):
            return np.where(defined > 0, total / defined, np.nan)

    return compute


def _divide(above: Floats, below: Floats, defined: npt.NDArray[np.bool_]) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=defined))


def roc_auc(examples: ScoredExamples) -> Weighted:
    """How often an example of the class is ranked above one that is not; equal scores count half."""

    def area(hits: Floats, both: Floats) -> Floats:
        above = np.cumsum(hits, axis=1)
        all_hits = above[:, -1].copy()
        misses = both - hits
        above -= hits / 2
        pairs = all_hits * misses.sum(axis=1)
        return _divide((misses * above).sum(axis=1), pairs, pairs > 0)

    return _macro(examples, area)


def average_precision(examples: ScoredExamples) -> Weighted:
    """Precision at every score down to which examples are called the class, weighted by the recall that it adds."""

    def area(hits: Floats, both: Floats) -> Floats:
        above, taken = np.cumsum(hits, axis=1), np.cumsum(both, axis=1)
        all_hits = above[:, -1].copy()
        precision = np.divide(above, taken, out=np.zeros_like(above), where=taken > 0)
        defined = (all_hits > 0) & (taken[:, -1] > all_hits)
        return _divide((hits * precision).sum(axis=1), all_hits, defined)

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
    bins = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    gaps = np.zeros((len(bins), BINS))
    gaps[np.arange(len(bins)), bins] = right - confidence
    return lambda weights: np.asarray(np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1))
