"""The linear probe: logistic regression on what a frozen encoder makes of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from fairtune.learners.base import (
    Arrays,
    CheckStop,
    ChosenSetting,
    FittedLearner,
    Inputs,
    LabelledInputs,
    Scores,
    choose,
)
from fairtune.learners.logistic import LinearHead, try_strengths

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


class LinearProbe(FittedLearner):
    """A linear head on features as the encoder gives them: the scaling by which it was fitted is folded into it."""

    name = "linear-probe"

    def __init__(self, classes: int, choice: ChosenSetting, head: LinearHead, notes: tuple[str, ...] = ()) -> None:
        super().__init__(classes, choice, notes)
        self.head = head

    @property
    def features(self) -> int:
        return int(self.head.weight.shape[1])

    def scores(self, inputs: Inputs) -> Scores:
        return self.head.scores(np.asarray(inputs, dtype=np.float64))

    def arrays(self) -> Arrays:
        return {"weight": self.head.weight, "bias": self.head.bias}

    @classmethod
    def restore(cls, classes: int, choice: ChosenSetting, facts: Mapping[str, Any], arrays: Arrays) -> Self:  # noqa: ARG003
        return cls(classes, choice, LinearHead(arrays["weight"], arrays["bias"]))


def fit_linear_probe(
    train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
) -> LinearProbe:
    """Fit a head for each strength on the training examples; the best on validation is kept as it is."""
    features = np.asarray(train.inputs, dtype=np.float64)
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread == 0] = 1.0
    held_out = (np.asarray(validation.inputs, dtype=np.float64) - mean) / spread, validation.labels
    found = try_strengths((features - mean) / spread, train.labels, held_out, classes, STRENGTHS, metric, check_stop)
    best = choose([trial for trial, _ in found], metric)
    head = next(head for trial, head in found if trial is best)
    plain = LinearHead(head.weight / spread, head.bias - (head.weight / spread) @ mean)
    return LinearProbe(
        classes, ChosenSetting(best.setting, tuple(trial for trial, _ in found)), plain, unfinished(head)
    )


def unfinished(head: LinearHead) -> tuple[str, ...]:
    """What to tell of a fit that was cut short."""
    return (
        () if head.converged else ("its logistic regression did not converge; the score is that of the last iteration",)
    )
