"""The nearest neighbours of a text among the training examples, by what a frozen encoder makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import (
    Arrays,
    CheckStop,
    ChosenSetting,
    FittedLearner,
    Inputs,
    LabelledInputs,
    Scores,
    choose,
    score_trial,
)
from fairtune.tasks.task import Labels

NEIGHBOURS = (1, 3, 5, 10, 20, 50)
EQUAL, BY_DISTANCE = "equal", "by distance"
VOTES = (EQUAL, BY_DISTANCE)
TEMPERATURE = 0.1
"""How fast the weight of a neighbour falls with its cosine, where votes are weighted."""
BLOCK = 256
"""Texts whose neighbours are sought at once."""


class NearestNeighbours(FittedLearner):
    """A vote of the training examples whose direction from their common mean is nearest.

    Args:
        mean: of the training examples' features.
        known: their directions, of length 1.
    """

    name = "knn-probe"

    def __init__(
        self,
        classes: int,
        choice: ChosenSetting,
        mean: npt.NDArray[np.float32],
        known: npt.NDArray[np.float32],
        labels: Labels,
    ) -> None:
        super().__init__(classes, choice)
        self.mean, self.known, self.labels = mean, known, labels

    @classmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Remember the training examples; how many are asked, and how they vote, is chosen on validation."""
        features = np.asarray(train.inputs, dtype=np.float32)
        mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        found = cls(classes, ChosenSetting({}), mean, directions(features, mean), train.labels)
        counts = [k for k in NEIGHBOURS if k <= len(train)]
        near, cosines = found.nearest(np.asarray(validation.inputs, dtype=np.float32), counts[-1])
        check_stop()
        trials = []
        for k in counts:
            for vote in VOTES if k > 1 else (EQUAL,):
                scores = voted(train.labels[near[:, :k]], cosines[:, :k], classes, vote)
                trials.append(score_trial({"k": k, "vote": vote}, validation.labels, scores, metric))
        found.choice = ChosenSetting(choose(trials, metric).setting, tuple(trials))
        return found

    @property
    def features(self) -> int:
        return int(self.known.shape[1])

    def scores(self, inputs: Inputs) -> Scores:
        k, vote = int(self.choice.setting["k"]), str(self.choice.setting["vote"])
        near, alike = self.nearest(np.asarray(inputs, dtype=np.float32), k)
        return voted(self.labels[near], alike, self.classes, vote)

    def nearest(self, inputs: npt.NDArray[np.float32], k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Of each input the k nearest training examples, the nearest first, and the cosines to them."""
        found, cosines = [], []
        for start in range(0, len(inputs), BLOCK):
            alike = directions(inputs[start : start + BLOCK], self.mean) @ self.known.T
            near = self._most_alike(alike)[:, :k]
            found.append(near)
            cosines.append(np.take_along_axis(alike, near, axis=1))
        return np.concatenate(found), np.concatenate(cosines)

    def _most_alike(self, alike: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
        """As many as are ever asked, the most alike first; always as many, so that equals come in the same order for every k."""
        most = min(NEIGHBOURS[-1], len(self.known))
        some = np.sort(np.argpartition(-alike, most - 1, axis=1)[:, :most], axis=1)
        order = np.argsort(-np.take_along_axis(alike, some, axis=1), axis=1, kind="stable")
        return np.take_along_axis(some, order, axis=1)

    def arrays(self) -> Arrays:
        return {"mean": self.mean, "known": self.known, "labels": self.labels}

    @classmethod
    def restore(cls, classes: int, choice: ChosenSetting, facts: Mapping[str, Any], arrays: Arrays) -> Self:  # noqa: ARG003
        return cls(classes, choice, arrays["mean"], arrays["known"], arrays["labels"])


def directions(features: npt.NDArray[np.float32], mean: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Where features lie, seen from a mean, all at the same distance."""
    apart = features - mean
    lengths = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(apart / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def voted(labels: Labels, cosines: npt.NDArray[np.float32], classes: int, vote: str) -> Scores:
    """Logarithms of the classes' shares of the votes, one more vote being spread over all classes.

    Args:
        labels: of the neighbours, a row for each text.
    """
    weights = np.ones(labels.shape)
    if vote == BY_DISTANCE:
        weights = np.exp((cosines - cosines[:, :1]).astype(np.float64) / TEMPERATURE)
        weights *= labels.shape[1] / weights.sum(axis=1, keepdims=True)
    shares = np.full((len(labels), classes), 1.0 / classes)
    for number in range(classes):
        shares[:, number] += np.where(labels == number, weights, 0).sum(axis=1)
    return np.asarray(np.log(shares / shares.sum(axis=1, keepdims=True)), dtype=np.float32)
