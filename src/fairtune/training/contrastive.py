"""Learning from pairs, as SetFit does: texts of a class are drawn together and others apart, then a linear head is fitted.

Published: Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts". The encoder's loss is the squared distance of a
pair's cosine similarity from 1 or 0; the head is logistic regression on the training texts, fitted anew at every evaluation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from fairtune.core.out_of_memory import ScoredParts
from fairtune.learners.base import Features, LabelledInputs
from fairtune.learners.encoder_features import compute_features
from fairtune.learners.setfit import SetFitHead, fit_setfit_head
from fairtune.ledger.predictions import Predictions
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.models.pooled_encoder import PooledEncoder
from fairtune.settings.learners import LEARNERS, count_pairs
from fairtune.settings.metrics import classification_metrics
from fairtune.tasks.tokens.encoded_splits import Encoded, Indices, training_batches
from fairtune.training.classification import PROBED, SAMPLED, quick_batches, to_device
from fairtune.training.objectives import Evaluation, scoring
from fairtune.training.pairs import Pairs, draw_pairs, require_both_kinds
from fairtune.training.ranks import ALONE, Ranks

CheckStop = Callable[[], None]


@dataclass(frozen=True)
class PairOutput:
    """What the model makes of a batch of pairs.

    Args:
        similarities: the cosine of each pair.
    """

    loss: Tensor
    similarities: Tensor


@dataclass
class Contrastive:
    """A task that classifies, learned from pairs; what the loop calls a training example is a pair.

    Args:
        data: the splits train, validation and test.
        labels: names of the classes.
        each: pairs of the same class, and of different ones, that an epoch has for each training text.
    """

    data: Mapping[str, Encoded]
    metric: str
    labels: tuple[str, ...]
    each: int
    scores_final: bool = False
    _epoch: Pairs | None = field(default=None, init=False, repr=False)
    _head: tuple[str, SetFitHead] | None = field(default=None, init=False, repr=False)

    @property
    def splits(self) -> Collection[str]:
        return self.data.keys()

    @property
    def training_data(self) -> TrainingData:
        counts = np.bincount(self.data["train"].labels, minlength=len(self.labels))
        return TrainingData(self.labels, tuple(map(int, counts)))

    def __len__(self) -> int:
        return count_pairs(len(self.data["train"]), self.each)

    def begin(self, model: nn.Module, methods: Sequence[Method], accelerator: Accelerator) -> None:  # noqa: ARG002
        require_both_kinds(self.data["train"].labels)

    def order(self, batch_size: int, seed: int, epoch: int) -> list[Indices]:
        train = self.data["train"]
        self._epoch = draw_pairs(train.labels, self.each, seed, epoch)
        longest = np.maximum(train.lengths[self._epoch.first], train.lengths[self._epoch.second])
        return training_batches(longest, batch_size, seed, epoch)

    @property
    def _pairs(self) -> Pairs:
        assert self._epoch is not None, "an epoch begins with its order"
        return self._epoch

    def batch(self, rows: Indices, device: torch.device) -> Batch:
        """The first texts of the pairs and then the second ones, with one label for each pair."""
        texts = to_device(self.data["train"], self._texts(rows), device)
        return {**texts, "labels": torch.from_numpy(self._pairs.same[rows]).to(device)}

    def _texts(self, rows: Indices) -> Indices:
        return np.concatenate([self._pairs.first[rows], self._pairs.second[rows]])

    def passing(self, device: torch.device) -> Iterator[Batch]:
        data = self.data["train"]
        return (to_device(data, rows, device) for rows in quick_batches(data, device))

    def sizes(self, rows: Indices) -> tuple[int, int]:
        lengths = self.data["train"].lengths[self._texts(rows)]
        real = int(lengths.sum())
        return real, len(lengths) * int(lengths.max()) - real

    def outputs(self, model: nn.Module, batch: Batch) -> PairOutput:
        vectors = model(**{name: part for name, part in batch.items() if name != "labels"})
        similarities = nn.functional.cosine_similarity(*vectors.chunk(2))
        return PairOutput(nn.functional.mse_loss(similarities, batch["labels"]), similarities)

    def weight(self, batch: Batch) -> float:
        return float(len(batch["labels"]))

    def evaluate(
        self,
        model: nn.Module,
        split: str,
        device: torch.device,
        methods: Sequence[Method],
        check_stop: CheckStop,
        scored: ScoredParts | None = None,
        ranks: Ranks = ALONE,
    ) -> Evaluation:
        data, scored = self.data[split], scored or ScoredParts()
        if not ranks.alone:  # each fits the same head by itself, on vectors of all texts, at its own pace
            check_stop()
            check_stop = _never
        with scoring(model, methods):
            head, known = self._fitted(model, device, check_stop, scored)
            vectors = (
                known
                if split == "validation" and known is not None
                else self._vectors(model, split, device, check_stop, scored)
            )
        scores = head.scores(vectors)
        loss = -float(scores[np.arange(len(data)), data.labels].mean(dtype=np.float64))
        return Evaluation({"scores": scores}, {"loss": loss, **classification_metrics(data.labels, scores)})

    def _fitted(
        self, model: nn.Module, device: torch.device, check_stop: CheckStop, scored: ScoredParts | None = None
    ) -> tuple[SetFitHead, Features | None]:
        """The head for the weights as they are, and the vectors of validation where they were made for it."""
        weights = _digest(model)
        if self._head is not None and self._head[0] == weights:
            return self._head[1], None
        found = {split: self._vectors(model, split, device, check_stop, scored) for split in ("train", "validation")}
        train, validation = (LabelledInputs(found[split], self.data[split].labels) for split in found)
        head = fit_setfit_head(train, validation, len(self.labels), self.metric, check_stop)
        self._head = weights, head
        return head, found["validation"]

    def _vectors(
        self, model: nn.Module, split: str, device: torch.device, check_stop: CheckStop, scored: ScoredParts | None
    ) -> Features:
        encoder = cast(PooledEncoder, model).encoder
        return compute_features(encoder, self.data[split], str(device), check_stop, scored=scored)

    def describe(self, model: nn.Module, device: torch.device, check_stop: CheckStop) -> dict[str, Any]:
        """What cards and reports say of the head for the weights as they are."""
        with scoring(model, ()):
            head, _ = self._fitted(model, device, check_stop)
        known = {"name": head.name, "short": LEARNERS[head.name].short, "examples": len(self.data["train"])}
        return {**known, "pairs": self.each, **head.describe()}

    def save_head(self, model: nn.Module, device: torch.device, folder: Path, known: Mapping[str, Any]) -> None:
        """Keep the head for the weights as they are, beside the encoder.

        Args:
            known: what else its reader should know.
        """
        with scoring(model, ()):
            head, _ = self._fitted(model, device, lambda: None)
        head.save(folder, {"labels": list(self.labels), "metric": self.metric, "pooling": "mean", **known})

    def predictions(self, split: str, found: Evaluation) -> Predictions:
        data = self.data[split]
        return Predictions(data.ids, data.labels, found.arrays["scores"])

    def probe(self) -> Batch:
        data = self.data["validation"]
        return to_device(data, np.arange(min(PROBED, len(data))), torch.device("cpu"))

    def sample(self, split: str) -> tuple[Contrastive, float]:
        """A small part of the split and of the training texts, which every evaluation reads too."""
        few = {name: self.data[name].take(np.arange(min(SAMPLED, len(self.data[name])))) for name in ("train", split)}
        there, taken = (sum(len(part[name]) for name in few) for part in (self.data, few))
        return replace(self, data={**self.data, **few}), there / taken


def _never() -> None: ...


def _digest(model: nn.Module) -> str:
    """Of all weights, by which a head is known to be theirs."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
