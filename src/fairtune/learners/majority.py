"""The most frequent class, whatever the text is."""

from __future__ import annotations

from typing import Self

import numpy as np

from fairtune.learners.base import CheckStop, ChosenSetting, FittedLearner, Inputs, LabelledInputs, Scores


class MajorityClass(FittedLearner):
    """Scores every text with the classes' shares of the training examples; one example of each class is added to them."""

    name = "majority"
    features = 0

    @classmethod
    def fit(
        cls,
        train: LabelledInputs,
        validation: LabelledInputs,  # noqa: ARG003 - there is nothing to choose
        classes: int,
        metric: str,  # noqa: ARG003
        check_stop: CheckStop,  # noqa: ARG003
    ) -> Self:
        counts = np.bincount(train.labels, minlength=classes) + 1.0
        return cls(classes, ChosenSetting({}), {"shares": np.log(counts / counts.sum()).astype(np.float32)})

    def scores(self, inputs: Inputs) -> Scores:
        return np.tile(self.arrays["shares"], (len(inputs), 1))
