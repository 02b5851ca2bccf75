"""The line at which two classes are told apart: at a probability of one half, or where a run does best on validation.

A run's scores may rank examples well and still lie on the wrong side of one half, as after a loss that weights classes. With
`compare: {threshold: validation}` each run's line is picked on its own validation predictions, which it stored, and used on test.

The rule is fixed: a line lies halfway between two neighbouring validation scores, or just beyond the outermost; one half is
always a candidate. The best by the study's metric is taken (by accuracy, where that metric has no line); of equally good ones the
nearest to one half, and of two that are as near the lower one, which says the second class more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairtune.core.errors import LedgerError
from fairtune.ledger.predictions import Predictions, TextScores
from fairtune.settings.metrics import METRICS

HALF, VALIDATION = "half", "validation"
FALLBACK = "accuracy"


def line_metric(metric: str) -> str:
    """What a line is picked by in a study of this metric."""
    return metric if metric in METRICS and METRICS[metric].has_line else FALLBACK


@dataclass(frozen=True)
class LinePolicy:
    """Where lines lie: as the study has it, and the metric that they are picked by."""

    threshold: str = HALF
    metric: str = FALLBACK

    def line(self, validation: Predictions | TextScores) -> float:
        """The line of a run, as a difference of scores; 0 is a probability of one half."""
        return pick_line(validation, self.metric) if self.threshold == VALIDATION else 0.0


def pick_line(validation: Predictions | TextScores, metric: str) -> float:
    """The line that is best on a run's validation predictions.

    Raises:
        LedgerError: they are not of two classes, so that there is no line.
    """
    if isinstance(validation, TextScores) or validation.scores.shape[1] != 2:
        raise LedgerError("a decision line is picked for two classes only; use `threshold: half`.")
    scores = validation.scores.astype(np.float64)
    odds = scores[:, 1] - scores[:, 0]
    if not np.isfinite(odds).all():
        return 0.0  # a run that diverged has no line that is better than another
    found, group = np.unique(odds, return_inverse=True)
    hits, misses = (np.bincount(group, validation.labels == number, len(found)) for number in (1, 0))
    # Lines from below the lowest score, where all are called the second class, to the highest, where none is.
    called = [np.concatenate([[0.0], np.cumsum(part)]) for part in (misses, hits)]
    counts = np.stack([np.stack([below, below[-1] - below], axis=-1) for below in called], axis=-2)
    lines = np.concatenate([[np.nextafter(found[0], -math.inf)], (found[:-1] + found[1:]) / 2, [found[-1]]])
    lines[np.searchsorted(found, 0.0, side="right")] = 0.0  # one half stands for all lines that say the same as it does
    figures = METRICS[metric].formula(counts)
    best = np.flatnonzero(figures >= figures.max() - 1e-12)
    return float(min(lines[best].tolist(), key=lambda line: (abs(line), line)))


def probability_at(line: float) -> float:
    """The probability of the second class that a line stands for."""
    return 1 / (1 + math.exp(-line)) if line > -700 else 0.0
