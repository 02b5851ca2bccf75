"""What classifiers get wrong: answers of an arm's runs, example by example, and shares of right ones with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.ledger.predictions import Predictions, TextScores, read_predictions

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
BANDS = 4


@dataclass(frozen=True)
class Answers:
    """What the runs of an arm answered on one split.

    Args:
        predicted: classes, [runs, examples].
        confidence: the probability of that class, [runs, examples].
    """

    ids: tuple[str, ...]
    labels: Classes
    predicted: Classes
    confidence: Floats

    @property
    def runs(self) -> int:
        return len(self.predicted)

    @property
    def right(self) -> Mask:
        return np.asarray(self.predicted == self.labels, dtype=np.bool_)

    @property
    def share_right(self) -> Floats:
        """Of the runs, for each example."""
        return np.asarray(self.right.mean(axis=0))


def read_answers(runs: Sequence[LedgerRun], split: str) -> Answers | None:
    """The answers of some runs; None where none scored the split, or not all the same examples of it."""
    found = [run.test if split == "test" else _read(run, split) for run in runs]
    scored = [one for one in found if isinstance(one, Predictions)]
    if not scored or len(scored) < len(found) or not scored[0].ids or len({one.ids for one in scored}) > 1:
        return None
    shares, predicted = [_softmax(one.scores) for one in scored], [one.predicted for one in scored]
    rows = np.arange(len(scored[0].ids))
    return Answers(
        scored[0].ids,
        scored[0].labels,
        np.stack(predicted),
        np.stack([share[rows, said] for share, said in zip(shares, predicted, strict=True)]),
    )


def _read(run: LedgerRun, split: str) -> Predictions | TextScores:
    """A split that may not have been scored, at the run's own line."""
    found = read_predictions(run.folder.predictions, split)
    return replace(found, line=run.line) if isinstance(found, Predictions) and found.ids else found


def together(answers: Sequence[Answers]) -> Answers:
    """The runs of several arms, scored on the same examples, as if of one."""
    first = answers[0]
    return Answers(
        first.ids,
        first.labels,
        np.concatenate([one.predicted for one in answers]),
        np.concatenate([one.confidence for one in answers]),
    )


def confusion(answers: Answers, classes: int) -> Floats:
    """How often each class was taken for each, [true, predicted], the mean over runs."""
    cells = answers.labels * classes + answers.predicted
    counts = np.bincount(cells.ravel(), minlength=classes * classes).reshape(classes, classes)
    return np.asarray(counts / answers.runs)


@dataclass(frozen=True)
class Share:
    """A share of examples with its interval."""

    value: float
    low: float
    high: float


def share_of(answers: Answers, members: Mask, confidence: float) -> Share:
    """The mean over runs of the share of right answers among some examples, with Wilson's interval for their number.

    Runs answer the same examples, so that more runs make no more examples: the interval is of the luck of examples alone.
    """
    n = int(members.sum())
    value = float(answers.right[:, members].mean())
    return Share(value, *wilson(value, n, confidence))


def wilson(share: float, n: float, confidence: float) -> tuple[float, float]:
    """Wilson's interval of a share among n, which may be a count that was worked out; all of 0 to 1 where nothing was seen."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    by = 1 + z * z / n
    return max(0.0, (middle - half) / by), min(1.0, (middle + half) / by)


def length_bands(tokens: npt.NDArray[np.integer], bands: int = BANDS) -> list[tuple[int, int]]:
    """Ranges of lengths, first and last included, that hold about the same number of examples."""
    ends = np.quantile(tokens, np.linspace(0, 1, bands + 1)[1:], method="inverted_cdf")
    found: list[tuple[int, int]] = []
    first = int(tokens.min())
    for end in np.unique(ends).tolist():
        found.append((first, int(end)))
        first = int(end) + 1
    return found


def _softmax(scores: npt.NDArray[np.float32]) -> Floats:
    shifted = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
