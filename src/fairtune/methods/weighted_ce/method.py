"""`weighted_cross_entropy`, a mean in which an example counts by the weight of its class, by itself and in a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.core.errors import ModelError
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import all_equal, resolved
from fairtune.methods.losses import of_batch, weights_of
from fairtune.methods.weighted_ce import WeightedCEConfig


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Sequence[float]) -> Tensor:
    """sum(w l) / sum(w) over a batch, as `torch.nn.CrossEntropyLoss(weight)` has it, in single precision.

    Args:
        logits: [batch, classes].
        labels: classes from 0, [batch].
        weights: one for each class, above 0.
    """
    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ModelError(f"weights are {list(weights)}; allowed are numbers above 0")
    logits = of_batch(logits, labels)
    return cross_entropy(logits, labels, weight=weights_of(tuple(weights), logits))


class WeightedCE(Method):
    config: WeightedCEConfig

    def begin(self, data: TrainingData) -> None:
        self._weights = resolved(self.config.weights, data)

    def weight(self, batch: Batch) -> float | None:
        if all_equal(self._weights):
            return None
        return float(sum(self._weights[label] for label in batch["labels"].tolist()))

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if all_equal(self._weights):  # also when balanced classes are to be balanced
            return None
        return weighted_cross_entropy(outputs.logits, batch["labels"], self._weights)
