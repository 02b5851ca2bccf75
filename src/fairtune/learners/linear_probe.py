"""The linear probe: logistic regression on what a frozen encoder makes of a text."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import CheckStop, FittedLearner, Inputs, LabelledInputs, Scores, choose, score_trial
from fairtune.learners.logistic import LinearHead, fit_heads

STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


class LinearProbe(FittedLearner):
    """A linear head on the directions of an encoder's vectors: the scaling by which it was fitted is folded into it."""

    name = "linear-probe"

    @classmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Fit a head for each strength on the training examples; the best on validation is kept as it is."""
        features = unit_rows(train.inputs)
        mean = features.mean(axis=0)
        # one scale for all: a dimension that hardly varies, as some of MiniLM's do, would be blown up to noise by its own
        spread = float(np.sqrt(((features - mean) ** 2).mean())) or 1.0
        held_out = (unit_rows(validation.inputs) - mean) / spread
        heads = fit_heads((features - mean) / spread, train.labels, classes, STRENGTHS, check_stop)
        found = [(score_trial({"C": c}, validation.labels, head.scores(held_out), metric), head) for c, head in heads]
        choice, head = choose(found, metric)
        plain = LinearHead(head.weight / spread, head.bias - (head.weight / spread) @ mean)
        return cls(classes, choice, plain.arrays, notes=head.notes)

    @property
    def head(self) -> LinearHead:
        return LinearHead(self.arrays["weight"], self.arrays["bias"])

    @property
    def features(self) -> int:
        return int(self.arrays["weight"].shape[1])

    def scores(self, inputs: Inputs) -> Scores:
        return self.head.scores(unit_rows(inputs))


class SetFitHead(LinearProbe):
    """The head of SetFit: on an encoder of its own, which was trained on pairs and is kept next to it."""

    name = "setfit"


def unit_rows(features: Any) -> npt.NDArray[np.float64]:
    """Vectors scaled to length 1, as sentence encoders are compared; one of length 0 stays."""
    rows = np.asarray(features, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths == 0, 1, lengths))
