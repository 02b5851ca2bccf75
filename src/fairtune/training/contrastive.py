"""Learning from pairs, as SetFit does: texts of a class are drawn together and others apart, then a linear head is fitted.

Published: Tunstall et al. 2022, "Efficient Few-Shot Learning Without Prompts". The encoder's loss is the squared distance of a
pair's cosine similarity from 1 or 0; the head is logistic regression on the training texts, fitted again at every evaluation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.learners.base import Features, LabelledInputs
from fairtune.learners.encoder_features import compute_features
from fairtune.learners.linear_probe import SetFitHead
from fairtune.methods.base import Batch, Method
from fairtune.models.pooled_encoder import PooledEncoder
from fairtune.settings.learners import LEARNERS, count_pairs
from fairtune.settings.metrics import classification_metrics
from fairtune.tasks.task import Labels
from fairtune.tasks.tokens.encoded_splits import Indices, training_batches
from fairtune.training.classification import SAMPLED, Classification, to_device
from fairtune.training.objectives import Evaluation, scoring

CheckStop = Callable[[], None]


@dataclass(frozen=True)
class PairOutput:
    """What the model makes of a batch of pairs.

    Args:
        similarities: the cosine of each pair.
    """

    loss: Tensor
    similarities: Tensor


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows of the training examples.

    Args:
        same: 1 where both are of one class, else 0.
    """

    first: Indices
    second: Indices
    same: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.same)


def draw_pairs(labels: Labels, each: int, seed: int, epoch: int) -> Pairs:
    """So many pairs of the same class and so many of different classes for each example, by the seed and the epoch alone.

    The partner is any other example of the class, or any of another class, all equally likely; never the example itself. The
    only example of its class has no partner in it and gets pairs of different classes instead.

    Raises:
        RunFailure: there is no pair of one of the two kinds.
    """
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)[labels[order]]
    starts = np.searchsorted(labels[order], labels[order])
    require_both_kinds(labels)
    generator = np.random.default_rng([seed, epoch, len("pairs")])
    places = np.arange(len(labels))
    firsts, seconds, same = [], [], []
    for kind in (1.0, 0.0):
        for _ in range(each):
            inside = starts + (places - starts + 1 + generator.integers(0, np.maximum(counts - 1, 1))) % counts
            beyond = generator.integers(0, len(labels) - counts)
            outside = beyond + np.where(beyond >= starts, counts, 0)
            paired = (counts > 1) if kind else np.zeros(len(labels), dtype=np.bool_)
            firsts.append(order)
            seconds.append(order[np.where(paired, inside, outside)])
            same.append(paired.astype(np.float32))
    return Pairs(np.concatenate(firsts), np.concatenate(seconds), np.concatenate(same))


def require_both_kinds(labels: Labels) -> None:
    """Refuse examples of which no two are of one class, or all are."""
    counts = np.bincount(labels)
    if (counts > 0).sum() < 2:
        raise RunFailure(
            "setfit: all training examples are of one class, so no pair is of different classes; use more examples"
        )
    if counts.max() < 2:
        raise RunFailure(
            "setfit: each class has one training example, so no pair is of one class; use two or more per class"
        )


@dataclass
class Contrastive(Classification):
    """A task that classifies, learned from pairs; what the loop calls a training example is a pair.

    Args:
        each: pairs of the same class, and of different ones, that an epoch has for each training text.
    """

    each: int = 1
    _drawn: Pairs | None = field(default=None, init=False, repr=False)
    _head: tuple[str, SetFitHead] | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return count_pairs(len(self.data["train"]), self.each)

    def begin(self, methods: Sequence[Method]) -> None:  # noqa: ARG002
        require_both_kinds(self.data["train"].labels)

    def order(self, batch_size: int, seed: int, epoch: int) -> list[Indices]:
        train = self.data["train"]
        self._drawn = draw_pairs(train.labels, self.each, seed, epoch)
        longest = np.maximum(train.lengths[self._drawn.first], train.lengths[self._drawn.second])
        return training_batches(longest, batch_size, seed, epoch)

    @property
    def _pairs(self) -> Pairs:
        assert self._drawn is not None, "an epoch begins with its order"
        return self._drawn

    def batch(self, rows: Indices, device: torch.device) -> Batch:
        """The first texts of the pairs and then the second ones, with one label for each pair."""
        texts = to_device(self.data["train"], self._texts(rows), device)
        return {**texts, "labels": torch.from_numpy(self._pairs.same[rows]).to(device)}

    def _texts(self, rows: Indices) -> Indices:
        return np.concatenate([self._pairs.first[rows], self._pairs.second[rows]])

    def sizes(self, rows: Indices) -> tuple[int, int]:
        lengths = self.data["train"].lengths[self._texts(rows)]
        real = int(lengths.sum())
        return real, len(lengths) * int(lengths.max()) - real

    def outputs(self, model: nn.Module, batch: Batch) -> PairOutput:
        vectors = model(**{name: part for name, part in batch.items() if name != "labels"})
        similarities = nn.functional.cosine_similarity(*vectors.chunk(2))
        return PairOutput(nn.functional.mse_loss(similarities, batch["labels"]), similarities)

    def evaluate(
        self,
        model: nn.Module,
        split: str,
        device: torch.device,
        methods: Sequence[Method],
        check_stop: CheckStop,
    ) -> Evaluation:
        data = self.data[split]
        with scoring(model, methods):
            head, known = self._fitted(model, device, check_stop)
            if split != "validation" or known is None:
                known = self._vectors(model, split, device, check_stop)
        scores = head.scores(known)
        loss = -float(scores[np.arange(len(data)), data.labels].mean(dtype=np.float64))
        return Evaluation({"scores": scores}, {"loss": loss, **classification_metrics(data.labels, scores)})

    def _fitted(
        self, model: nn.Module, device: torch.device, check_stop: CheckStop
    ) -> tuple[SetFitHead, Features | None]:
        """The head for the weights as they are, and the vectors of validation where they were made for it."""
        weights = _digest(model)
        if self._head is not None and self._head[0] == weights:
            return self._head[1], None
        found = {split: self._vectors(model, split, device, check_stop) for split in ("train", "validation")}
        train, validation = (LabelledInputs(found[split], self.data[split].labels) for split in found)
        head = SetFitHead.fit(train, validation, len(self.labels), self.metric, check_stop)
        self._head = weights, head
        return head, found["validation"]

    def _vectors(self, model: nn.Module, split: str, device: torch.device, check_stop: CheckStop) -> Features:
        encoder = cast(PooledEncoder, model).encoder
        return compute_features(encoder, self.data[split], str(device), check_stop)

    def describe_head(self, model: nn.Module, device: torch.device, check_stop: CheckStop) -> dict[str, Any]:
        """What cards and reports say of the head for the weights as they are."""
        with scoring(model, ()):
            head, _ = self._fitted(model, device, check_stop)
        known = {"name": head.name, "short": LEARNERS[head.name].short, "examples": len(self.data["train"])}
        return {**known, "pairs": self.each, **head.describe()}

    def save_head(self, model: nn.Module, device: torch.device, folder: Path, known: Mapping[str, Any]) -> None:
        """Keep the head for the weights as they are, next to the encoder.

        Args:
            known: what else its reader should know.
        """
        with scoring(model, ()):
            head, _ = self._fitted(model, device, lambda: None)
        head.save(folder, {"labels": list(self.labels), "metric": self.metric, "pooling": "mean", **known})

    def sample(self, split: str) -> tuple[Contrastive, float]:
        """A small part of the split and of the training texts, which every evaluation reads too."""
        few = {name: self.data[name].take(np.arange(min(SAMPLED, len(self.data[name])))) for name in ("train", split)}
        there, taken = (sum(len(part[name]) for name in few) for part in (self.data, few))
        return replace(self, data={**self.data, **few}), there / taken


def _digest(model: nn.Module) -> str:
    """Of all weights, by which a head is known to be theirs."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
