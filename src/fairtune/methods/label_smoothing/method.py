"""Label smoothing in a run, as torch defines it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.methods.base import Batch, Method
from fairtune.methods.label_smoothing import LabelSmoothingConfig
from fairtune.methods.losses import of_batch


class LabelSmoothing(Method):
    config: LabelSmoothingConfig

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if self.config.idle:
            return None
        logits = of_batch(outputs.logits, batch["labels"])
        return cross_entropy(logits, batch["labels"], label_smoothing=self.config.smoothing)
