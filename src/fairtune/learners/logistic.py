"""Logistic regression with its strength chosen on validation: the head of every simple learner that has one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import Arrays, CheckStop, Scores
from fairtune.tasks.task import Labels

ITERATIONS, TOLERANCE = 1000, 1e-4
UNSEEN = -20.0
"""The bias of a class that no training example has: its probability is next to nothing, yet a number."""


@dataclass(frozen=True)
class LinearHead:
    """Weights [classes, features] and biases of all classes.

    Args:
        converged: whether the fit ended by itself.
    """

    weight: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]
    converged: bool = True

    def scores(self, features: Any) -> Scores:
        """Logarithms of probabilities; features may be a dense or a sparse matrix."""
        logits = np.asarray(features @ self.weight.T) + self.bias
        shifted = logits - logits.max(axis=1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), dtype=np.float32)

    @property
    def arrays(self) -> Arrays:
        return {"weight": self.weight, "bias": self.bias}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its scores must know."""
        note = "its logistic regression did not converge; the score is that of the last iteration"
        return () if self.converged else (note,)


def fit_heads(
    features: Any, labels: Labels, classes: int, strengths: Sequence[float], check_stop: CheckStop
) -> Iterator[tuple[float, LinearHead]]:
    """A head for each strength (`C`, weakest regularisation last); each begins where the one before ended."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    seen = np.unique(labels)
    if len(seen) == 1:
        bias = np.full(classes, UNSEEN)
        bias[seen] = 0.0
        yield strengths[0], LinearHead(np.zeros((classes, features.shape[1])), bias)
        return
    model = LogisticRegression(max_iter=ITERATIONS, tol=TOLERANCE, warm_start=True)
    for strength in strengths:
        check_stop()
        model.set_params(C=strength)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said in the learner's notes instead
            model.fit(features, labels)
        yield strength, _head(model, seen, classes)


def _head(model: Any, seen: npt.NDArray[np.int64], classes: int) -> LinearHead:
    """The head of scikit-learn's model, which has one row for two classes and none for what it has not seen."""
    weight, bias = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    if len(seen) == 2 and len(weight) == 1:
        weight, bias = np.vstack([np.zeros_like(weight), weight]), np.concatenate([[0.0], bias])
    whole = np.zeros((classes, weight.shape[1])), np.full(classes, UNSEEN)
    whole[0][seen], whole[1][seen] = weight, bias
    return LinearHead(*whole, converged=bool((model.n_iter_ < ITERATIONS).all()))
