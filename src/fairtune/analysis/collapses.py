"""Runs that did not learn: their predictions are one class, or no better than always saying the most frequent one.

By a metric that has no decision line, a run did not learn if its scores do not rank the classes: one that calls everything the
same class may still do that. Such runs are results, not accidents: they are counted, their rates are compared, and verdicts are
given with and without them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.ledger.predictions import Predictions, TextScores
from fairtune.settings.metrics import METRICS
from fairtune.settings.score_metrics import LEAST, ScoredExamples

MAJORITY, GUESS = "at or below the majority class", "no better than a guess among all tokens"
UNRANKED = "no better at ranking than chance"
RANKING = "roc_auc"
"""What tells whether scores say anything about the classes."""


@dataclass(frozen=True)
class Collapses:
    """How often an arm did not learn, beside the arm that it is compared with.

    Args:
        seeds: of the runs that did not.
        finished: runs that are counted.
        other, other_finished: the same of the other arm; None for the reference.
        p: of equal rates, by Fisher's exact test.
        level: that they are not above.
    """

    arm: str
    seeds: tuple[int, ...]
    finished: int
    reference: str | None = None
    other: int | None = None
    other_finished: int | None = None
    p: float | None = None
    level: str = MAJORITY

    def __str__(self) -> str:
        own = f"{len(self.seeds)} of {self.finished} runs of {self.arm} did not learn ({self.level})"
        if self.reference is None or self.p is None:
            return own
        p = "< .001" if self.p < 0.001 else f"= {self.p:.2f}"
        return f"{own}, against {self.other} of {self.other_finished} of {self.reference} (Fisher's p {p})"


def is_collapsed(run: LedgerRun, vocabulary: int | None = None, metric: str | None = None) -> bool:
    """Whether a finished run's test predictions say that it learned nothing.

    Args:
        vocabulary: of a language model; guessing among all its tokens is no better than this.
        metric: that counts; where it has no decision line, neither has learning.
    """
    found = run.test
    if isinstance(found, TextScores):
        loss = run.metrics["loss"]
        return not math.isfinite(loss) or (vocabulary is not None and loss >= math.log(vocabulary))
    if np.ptp(found.labels) == 0:
        return False  # nothing can be told where there is one class only
    if is_ranked(metric):
        return not run.metrics[RANKING] > CHANCE  # nor is one whose scores are no numbers
    predicted = found.predicted
    return bool(np.ptp(predicted) == 0) or float(np.mean(predicted == found.labels)) <= majority_share(found)


CHANCE = 0.5
"""ROC AUC of scores that say nothing."""


def is_ranked(metric: str | None) -> bool:
    """Whether runs are told from those that did not learn by how they rank: the metric knows no predicted classes."""
    return metric in METRICS and METRICS[metric].from_scores is not None


def majority_share(found: Predictions) -> float:
    """The accuracy of always saying the most frequent class."""
    return float(np.bincount(found.labels).max() / len(found.labels))


def chance_score(found: Predictions | TextScores, metric: str, vocabulary: int | None) -> float | None:
    """What a metric is without learning: always the most frequent class, or a guess among all tokens; None if not known.

    Where scores count, all examples get the same: the shares of the classes. That is perfectly calibrated, which is no sign of
    learning, so nothing is known of a calibration error.
    """
    if isinstance(found, TextScores):
        if vocabulary is None:
            return None
        by_loss = METRICS[metric].from_loss
        return None if by_loss is None else by_loss(math.log(vocabulary))
    if is_ranked(metric):
        if metric == "calibration_error":
            return None
        counts = np.bincount(found.labels, minlength=found.scores.shape[1])
        with np.errstate(divide="ignore"):
            shares = np.maximum(np.log(counts / counts.sum()), LEAST)
        found_by_chance = METRICS[metric].of_scores(
            ScoredExamples(found.labels, np.tile(shares, (len(found.labels), 1)))
        )
        return found_by_chance if math.isfinite(found_by_chance) else None
    most = int(np.bincount(found.labels).argmax())
    return METRICS[metric].of_predictions(found.labels, np.full_like(found.labels, most), found.scores.shape[1])


def compare_rates(
    arm: str,
    runs: Sequence[LedgerRun],
    vocabulary: int | None,
    reference: str | None = None,
    others: Sequence[LedgerRun] = (),
    metric: str | None = None,
) -> Collapses:
    """How many of an arm's runs did not learn, and whether that differs from another arm."""
    seeds = tuple(run.seed for run in runs if is_collapsed(run, vocabulary, metric))
    text = bool(runs) and isinstance(runs[0].test, TextScores)
    level = GUESS if text else UNRANKED if is_ranked(metric) else MAJORITY
    if reference is None or not others:
        return Collapses(arm, seeds, len(runs), level=level)
    other = sum(is_collapsed(run, vocabulary, metric) for run in others)
    table = [[len(seeds), len(runs) - len(seeds)], [other, len(others) - other]]
    p = _fisher(table) if runs else None
    return Collapses(arm, seeds, len(runs), reference, other, len(others), p, level)


def _fisher(table: list[list[int]]) -> float:
    """The p of Fisher's exact test; nothing differs where nobody collapsed, and scipy need not be imported to say so."""
    if table[0][0] == table[1][0] == 0:
        return 1.0
    from scipy.stats import fisher_exact

    return float(fisher_exact(table)[1])
