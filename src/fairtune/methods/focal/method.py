"""Focal loss in a run."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import resolved
from fairtune.methods.focal.config import FocalConfig
from fairtune.methods.focal.loss import FocalLoss


class Focal(Method):
    config: FocalConfig

    def begin(self, data: TrainingData) -> None:
        alpha = self.config.alpha
        by_class = alpha if alpha is None or isinstance(alpha, float) else resolved(alpha, data)
        self._loss = FocalLoss(self.config.gamma, by_class)

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if self.config.idle:
            return None
        found: Tensor = self._loss(outputs.logits, batch["labels"])
        return found
