"""The nearest neighbours of a text among the training examples, by what a frozen encoder makes of them."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import CheckStop, FittedLearner, Inputs, LabelledInputs, Scores, choose, score_trial
from fairtune.tasks.task import Labels

NEIGHBOURS = (1, 3, 5, 10, 20, 50)
EQUAL, BY_DISTANCE = "equal", "by distance"
VOTES = (EQUAL, BY_DISTANCE)
TEMPERATURE = 0.1
"""How fast the weight of a neighbour falls with its cosine, where votes are weighted."""
BLOCK = 256
"""Texts whose neighbours are sought at once."""


class NearestNeighbours(FittedLearner):
    """A vote of the training examples (`known`, of length 1) whose direction from their common `mean` is nearest."""

    name = "knn-probe"

    @classmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Remember the training examples; how many are asked, and how they vote, is chosen on validation."""
        features = np.asarray(train.inputs, dtype=np.float32)
        mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        known = directions(features, mean)
        counts = [k for k in NEIGHBOURS if k <= len(train)]
        near, cosines = nearest(directions(np.asarray(validation.inputs, dtype=np.float32), mean), known, counts[-1])
        check_stop()
        tried = []
        for k in counts:
            for vote in VOTES if k > 1 else (EQUAL,):
                scores = voted(train.labels[near[:, :k]], cosines[:, :k], classes, vote)
                tried.append((score_trial({"k": k, "vote": vote}, validation.labels, scores, metric), None))
        choice, _ = choose(tried, metric)
        return cls(classes, choice, {"mean": mean, "known": known, "labels": train.labels})

    @property
    def features(self) -> int:
        return int(self.arrays["known"].shape[1])

    def scores(self, inputs: Inputs) -> Scores:
        k, vote = int(self.choice.setting["k"]), str(self.choice.setting["vote"])
        asked = directions(np.asarray(inputs, dtype=np.float32), self.arrays["mean"])
        near, cosines = nearest(asked, self.arrays["known"], k)
        return voted(self.arrays["labels"][near], cosines, self.classes, vote)


def nearest(
    asked: npt.NDArray[np.float32], known: npt.NDArray[np.float32], k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Of each direction the k nearest known ones, the nearest first, and the cosines to them.

    As many as are ever asked are put in order, so that equals come in the same order for every k.
    """
    most = min(NEIGHBOURS[-1], len(known))
    found, cosines = [], []
    for start in range(0, len(asked), BLOCK):
        alike = asked[start : start + BLOCK] @ known.T
        some = np.sort(np.argpartition(-alike, most - 1, axis=1)[:, :most], axis=1)
        order = np.argsort(-np.take_along_axis(alike, some, axis=1), axis=1, kind="stable")
        near = np.take_along_axis(some, order, axis=1)[:, :k]
        found.append(near)
        cosines.append(np.take_along_axis(alike, near, axis=1))
    return np.concatenate(found), np.concatenate(cosines)


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
