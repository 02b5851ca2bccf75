"""What a run learns and is scored by: all that the loop needs to know of a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
import torch
from torch import nn

from fairtune.ledger.predictions import Predictions, TextScores
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.tasks.tokens.encoded_splits import Indices


@dataclass(frozen=True)
class Evaluation:
    """What a split scored.

    Args:
        arrays: by name, one row per example: what predictions are made of.
        metrics: the figures that they make.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    metrics: dict[str, float]


class Objective(Protocol):
    """A task, ready to be trained on."""

    @property
    def metric(self) -> str:
        """The validation figure that selects the best checkpoint."""

    @property
    def scores_final(self) -> bool:
        """Whether the test split is also scored with the weights of the last step."""

    @property
    def splits(self) -> Collection[str]:
        """Which there are of train, validation and test. Without validation the last weights count as the best."""

    @property
    def training_data(self) -> TrainingData:
        """What methods may know of the training examples."""

    def __len__(self) -> int:
        """How many training examples there are."""

    def begin(self, methods: Sequence[Method]) -> None:
        """Called once before the first batch."""

    def order(self, batch_size: int, seed: int, epoch: int) -> list[Indices]:
        """The batches of an epoch, as rows of the training examples. That epoch's examples are the ones in use from here."""

    def batch(self, rows: Indices, device: torch.device) -> Batch:
        """Training examples as the model takes them, with labels."""

    def passing(self, device: torch.device) -> Iterator[Batch]:
        """Every training example once and untouched, for a pass without learning; the same batches every time."""

    def sizes(self, rows: Indices) -> tuple[int, int]:
        """Real tokens of a batch, and padding."""

    def outputs(self, model: nn.Module, batch: Batch) -> Any:
        """The model's answer to a batch; it has a `loss`, the mean over the batch."""

    def evaluate(
        self,
        model: nn.Module,
        split: str,
        device: torch.device,
        methods: Sequence[Method],
        check_stop: Callable[[], None],
    ) -> Evaluation:
        """Score a split: every example once.

        Args:
            check_stop: called before each batch, so that a long evaluation can be stopped.
        """

    def describe_head(self, model: nn.Module, device: torch.device, check_stop: Callable[[], None]) -> dict[str, Any]:
        """What cards and reports say of a head that is fitted apart from the model; empty where there is none."""

    def save_head(self, model: nn.Module, device: torch.device, folder: Path, known: Mapping[str, Any]) -> None:
        """Keep such a head next to the model.

        Args:
            known: what else its reader should know.
        """

    def predictions(self, split: str, found: Evaluation) -> Predictions | TextScores:
        """What is recorded of an evaluation."""

    def probe(self) -> Batch:
        """A few validation examples on the CPU, to measure a model on."""

    def sample(self, split: str) -> tuple[Objective, float]:
        """The same with a small part of a split, and how many times as large the whole is."""


@contextmanager
def scoring(model: nn.Module, methods: Sequence[Method]) -> Iterator[None]:
    """Evaluation mode without gradients, and with what the methods hold while the model is evaluated."""
    training = model.training
    with ExitStack() as stack:
        for method in methods:
            stack.enter_context(method.evaluating(model))
        stack.callback(model.train, training)
        model.eval()
        stack.enter_context(torch.inference_mode())
        yield
