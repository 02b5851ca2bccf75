"""What a run scored, as totals of which a metric is a function: any weighting of its examples gives the metric at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairtune.ledger.predictions import SUMS, Predictions, TextScores
from fairtune.settings.metrics import METRICS, predicted_classes

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]


class Scored(Protocol):
    """What one run scored, by unit of resampling."""

    @property
    def unit(self) -> str:
        """What is resampled, in a word."""

    @property
    def units(self) -> int:
        """How many there are."""

    @property
    def drawn(self) -> int:
        """How many of them a draw takes."""

    @property
    def least_variance(self) -> float:
        """No difference between two arms is surer than this."""

    @property
    def most_freedom(self) -> float:
        """Degrees of freedom that the units allow."""

    def totals(self, weights: Floats) -> Floats:
        """Totals of every draw, [draws, ...], from weights [draws, units]."""


@dataclass(frozen=True)
class Classified:
    """Predicted classes; the totals are confusion counts [draws, true class, predicted class]."""

    labels: Classes
    predicted: Classes
    classes: int
    unit: str = "example"
    most_freedom: float = math.inf

    @property
    def units(self) -> int:
        return len(self.labels)

    @property
    def drawn(self) -> int:
        return len(self.labels)

    @property
    def least_variance(self) -> float:
        """Arms that agree on every example may still differ on the next: one example that goes the other way."""
        return 1 / len(self.labels) ** 2

    @cached_property
    def _cells(self) -> tuple[Classes, Classes, Classes]:
        """Examples in the order of their cells, the cells that occur, and where each begins."""
        cells = self.labels * self.classes + self.predicted
        order = np.argsort(cells, kind="stable")
        found, starts = np.unique(cells[order], return_index=True)
        return order, found, starts

    def totals(self, weights: Floats) -> Floats:
        order, found, starts = self._cells
        counts = np.zeros((len(weights), self.classes * self.classes))
        counts[:, found] = np.add.reduceat(weights[:, order], starts, axis=1)
        return counts.reshape(len(weights), self.classes, self.classes)


@dataclass(frozen=True)
class Documents:
    """Sums by document, [documents, (nll, tokens, bytes, words, correct)]; a document's tokens are not independent.

    Corpora may have few documents, so one fewer is drawn than there are, as for seeds, and they bound the freedom.
    """

    sums: Floats
    unit: str = "document"
    least_variance: float = 0.0

    @property
    def units(self) -> int:
        return len(self.sums)

    @property
    def drawn(self) -> int:
        return len(self.sums) - 1

    @property
    def most_freedom(self) -> float:
        return len(self.sums) - 1

    def totals(self, weights: Floats) -> Floats:
        return np.asarray(weights @ self.sums)


def scored(found: Predictions | TextScores) -> Scored:
    """What a run stored, ready to be resampled."""
    if isinstance(found, TextScores):
        return Documents(np.stack([np.asarray(getattr(found, name), dtype=np.float64) for name in SUMS], axis=1))
    return Classified(found.labels, predicted_classes(found.scores), found.scores.shape[1])


def metric_from_totals(metric: str) -> Callable[[Floats], Floats]:
    """A metric as a function of the totals of its kind."""
    return METRICS[metric].from_totals
