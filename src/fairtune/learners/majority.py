"""The most frequent class, whatever the text is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import Arrays, CheckStop, ChosenSetting, FittedLearner, Inputs, LabelledInputs, Scores


class MajorityClass(FittedLearner):
    """Scores every text with the classes' shares of the training examples.

    Args:
        shares: logarithms; one example of each class is added, so that none is impossible.
    """

    name = "majority"

    def __init__(self, classes: int, choice: ChosenSetting, shares: npt.NDArray[np.float32]) -> None:
        super().__init__(classes, choice)
        self.shares = shares

    @classmethod
    def fit(
        cls,
        train: LabelledInputs,
        validation: LabelledInputs,  # noqa: ARG003 - there is nothing to choose
        classes: int,
        metric: str,  # noqa: ARG003
        check_stop: CheckStop,  # noqa: ARG003
    ) -> Self:
        """Count the classes."""
        counts = np.bincount(train.labels, minlength=classes) + 1.0
        return cls(classes, ChosenSetting({}), np.log(counts / counts.sum()).astype(np.float32))

    @property
    def features(self) -> int:
        return 0

    def scores(self, inputs: Inputs) -> Scores:
        return np.tile(self.shares, (len(inputs), 1))

    def arrays(self) -> Arrays:
        return {"shares": self.shares}

    @classmethod
    def restore(cls, classes: int, choice: ChosenSetting, facts: Mapping[str, Any], arrays: Arrays) -> Self:  # noqa: ARG003
        return cls(classes, choice, arrays["shares"])
