"""What every simple learner is once it is fitted: it scores, it says what was chosen, and it is kept without pickle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from fairtune.core.files import write_json
from fairtune.settings.metrics import METRICS, classification_metrics
from fairtune.tasks.task import Labels, Texts

FACTS, TENSORS = "learner.json", "learner.safetensors"
FORMAT = 1
Features = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float32]
Arrays = dict[str, npt.NDArray[Any]]
CheckStop = Callable[[], None]
Inputs = Sequence[Texts] | Features
"""What a learner reads: texts; or, if it has an encoder, what that makes of them."""
Fit = TypeVar("Fit")


@dataclass(frozen=True)
class LabelledInputs:
    """The inputs of a split, with their classes."""

    inputs: Any
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TriedSetting:
    """One setting that was tried, and its score on validation."""

    setting: Mapping[str, Any]
    score: float
    loss: float


@dataclass(frozen=True)
class ChosenSetting:
    """What was chosen on validation, and of what.

    Args:
        setting: by name, such as `C`; empty where there is nothing to choose.
        tried: every setting, in the order in which it was tried.
    """

    setting: Mapping[str, Any]
    tried: tuple[TriedSetting, ...] = ()

    def as_json(self) -> dict[str, Any]:
        tried = [{**trial.setting, "score": trial.score, "loss": trial.loss} for trial in self.tried]
        return {"chosen": dict(self.setting), "tried": tried}


class FittedLearner(ABC):
    """A learner that has learned. Arrays and facts (plain data) are all it knows, so keeping those keeps it.

    Args:
        notes: what a reader of its results must know.
    """

    name: ClassVar[str]

    def __init__(
        self,
        classes: int,
        choice: ChosenSetting,
        arrays: Arrays,
        facts: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.classes, self.choice, self.arrays, self.facts, self.notes = classes, choice, arrays, facts or {}, notes

    @classmethod
    @abstractmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Learn from the training examples; what it can be set to is chosen on validation, by the metric."""

    @property
    @abstractmethod
    def features(self) -> int:
        """How many numbers it reads of a text."""

    @abstractmethod
    def scores(self, inputs: Inputs) -> Scores:
        """Logarithms of the probability of each class, a row for each input."""

    def describe(self) -> dict[str, Any]:
        """What cards and reports say of it."""
        parameters = sum(int(array.size) for array in self.arrays.values())
        return {"features": self.features, "parameters": parameters, **self.choice.as_json()}

    def save(self, folder: Path, more: Mapping[str, Any] | None = None) -> None:
        """Keep it in a folder, with `more` that its reader should know, such as the names of the classes."""
        from safetensors.numpy import save

        folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        (folder / TENSORS).write_bytes(save(arrays))
        known = {"format": FORMAT, "learner": self.name, "classes": self.classes, **self.describe(), **(more or {})}
        write_json(folder / FACTS, {**known, "facts": self.facts})


def score_trial(setting: Mapping[str, Any], labels: Labels, scores: Scores, metric: str) -> TriedSetting:
    """A setting with its score on validation."""
    loss = float(-scores[np.arange(len(labels)), labels].mean(dtype=np.float64))
    return TriedSetting(setting, classification_metrics(labels, scores)[metric], loss)


def choose(tried: Sequence[tuple[TriedSetting, Fit]], metric: str) -> tuple[ChosenSetting, Fit]:
    """The best by the metric, with what was fitted for it; of equals that with the lowest log loss, then the first."""
    sign = 1 if METRICS[metric].lower_is_better else -1
    best, fitted = min(tried, key=lambda one: (sign * one[0].score, one[0].loss))
    return ChosenSetting(best.setting, tuple(trial for trial, _ in tried)), fitted
