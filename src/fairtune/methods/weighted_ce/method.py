"""Weighted cross entropy in a run."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import all_equal, resolved
from fairtune.methods.weighted_ce.config import WeightedCEConfig
from fairtune.methods.weighted_ce.loss import weighted_cross_entropy


class WeightedCE(Method):
    config: WeightedCEConfig

    def begin(self, data: TrainingData) -> None:
        self._weights = resolved(self.config.weights, data)

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if all_equal(self._weights):  # also when balanced classes are to be balanced
            return None
        return weighted_cross_entropy(outputs.logits, batch["labels"], self._weights)
