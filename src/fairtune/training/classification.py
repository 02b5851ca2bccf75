"""Learning to classify: batches of similar length, every example scored once, scores back in the order of the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from fairtune.core.errors import RunFailure
from fairtune.core.out_of_memory import score_each
from fairtune.ledger.predictions import Predictions
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.settings.few_labels import Examples
from fairtune.settings.metrics import classification_metrics
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import (
    Encoded,
    Indices,
    collate,
    encode,
    evaluation_batches,
    training_batches,
)
from fairtune.training.objectives import Evaluation, scoring

TOKENS_PER_BATCH = {"cpu": 1024}
"""Padded tokens in a batch that is scored: what fits a CPU's caches, or what fills a GPU."""
MANY_TOKENS = 16384
PROBED, SAMPLED = 8, 128


@dataclass(frozen=True)
class TrainingTexts:
    """The training split as text, for methods that change it: tokenised again for every epoch.

    An epoch's tokens follow from the texts, the seed and the epoch alone.

    Args:
        examples: how many of the split are used; None is all.
        seed: that draws them, where each seed has its own.
    """

    whole: Split
    tokenizer: Any
    max_length: int
    examples: Examples | None = None
    seed: int | None = None

    @cached_property
    def split(self) -> Split:
        """The examples that are used; found when they are needed, since that reads them all."""
        return fixed_sample(self.whole, self.examples, self.seed)

    def encoded(self, methods: Sequence[Method], epoch: int) -> Encoded:
        """The tokens of an epoch's texts."""
        texts: Sequence[Any] = list(self.split.texts)
        for method in methods:
            texts = method.texts(texts, epoch)
        if len(texts) != len(self.split):
            raise RunFailure(f"methods made {len(texts):,} texts of {len(self.split):,}; each must stay one")
        changed = Split.of(self.split.ids, texts, self.split.labels)
        return encode(changed, self.tokenizer, self.max_length)


def to_device(data: Encoded, rows: Indices, device: torch.device) -> Batch:
    """The rows as a padded batch on the device."""
    batch = {name: torch.from_numpy(array) for name, array in collate(data, rows).items()}
    return batch if device.type == "cpu" else {k: v.to(device, non_blocking=True) for k, v in batch.items()}


def quick_batches(data: Encoded, device: torch.device) -> list[Indices]:
    return list(evaluation_batches(data.lengths, TOKENS_PER_BATCH.get(device.type, MANY_TOKENS)))


@dataclass
class Classification:
    """A task that classifies, as tokens.

    Args:
        data: the split train, and validation and test where there are such.
        labels: names of the classes.
        texts: what the training tokens were made of; needed only by methods that change it.
    """

    data: Mapping[str, Encoded]
    metric: str
    labels: tuple[str, ...] = ()
    texts: TrainingTexts | None = None
    scores_final: bool = False
    _changing: list[Method] = field(default_factory=list, init=False, repr=False)
    _epoch: Encoded | None = field(default=None, init=False, repr=False)

    @property
    def splits(self) -> Collection[str]:
        return self.data.keys()

    @property
    def training_data(self) -> TrainingData:
        counts = np.bincount(self.data["train"].labels, minlength=len(self.labels))
        return TrainingData(self.labels, tuple(map(int, counts)))

    def __len__(self) -> int:
        return len(self.data["train"])

    def begin(self, methods: Sequence[Method]) -> None:
        """Find the methods that change training texts from epoch to epoch."""
        self._changing = [m for m in methods if type(m).texts is not Method.texts and not m.config.idle]

    def order(self, batch_size: int, seed: int, epoch: int) -> list[Indices]:
        if self._changing:
            assert self.texts is not None, "methods that change texts need the texts"
            self._epoch = self.texts.encoded(self._changing, epoch)
        return training_batches(self._train.lengths, batch_size, seed, epoch)

    @property
    def _train(self) -> Encoded:
        """The training examples as they are in this epoch."""
        return self.data["train"] if self._epoch is None else self._epoch

    def batch(self, rows: Indices, device: torch.device) -> Batch:
        return to_device(self._train, rows, device)

    def passing(self, device: torch.device) -> Iterator[Batch]:
        data = self.data["train"]
        return (to_device(data, rows, device) for rows in quick_batches(data, device))

    def sizes(self, rows: Indices) -> tuple[int, int]:
        lengths = self._train.lengths[rows]
        real = int(lengths.sum())
        return real, len(rows) * int(lengths.max()) - real

    def outputs(self, model: nn.Module, batch: Batch) -> Any:
        return model(**batch)

    def evaluate(
        self,
        model: nn.Module,
        split: str,
        device: torch.device,
        methods: Sequence[Method],
        check_stop: Callable[[], None],
    ) -> Evaluation:
        data = self.data[split]
        scores: npt.NDArray[np.float32] | None = None

        def score(rows: Indices) -> None:
            nonlocal scores
            check_stop()
            batch = {k: v for k, v in to_device(data, rows, device).items() if k != "labels"}
            logits = model(**batch).logits.float().cpu().numpy()
            if scores is None:
                scores = np.zeros((len(data), logits.shape[1]), dtype=np.float32)
            scores[rows] = logits

        with scoring(model, methods):
            score_each(quick_batches(data, device), score)
        assert scores is not None, "a split is never empty"
        loss = torch.nn.functional.cross_entropy(torch.from_numpy(scores).double(), torch.from_numpy(data.labels))
        return Evaluation({"scores": scores}, {"loss": float(loss), **classification_metrics(data.labels, scores)})

    def describe_head(self, *_: Any) -> dict[str, Any]:
        return {}

    def save_head(self, *_: Any) -> None:
        """The head is part of the model."""

    def predictions(self, split: str, found: Evaluation) -> Predictions:
        data = self.data[split]
        return Predictions(data.ids, data.labels, found.arrays["scores"])

    def probe(self) -> Batch:
        data = self.data["validation" if "validation" in self.data else "train"]
        return to_device(data, np.arange(min(PROBED, len(data))), torch.device("cpu"))

    def sample(self, split: str) -> tuple[Classification, float]:
        data = self.data[split]
        few = data.take(np.arange(min(SAMPLED, len(data))))
        return replace(self, data={**self.data, split: few}), len(data) / len(few)
