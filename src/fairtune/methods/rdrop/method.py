"""R-Drop in a run: doubled batches, the penalty, and a refusal where it could do nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairtune.core.errors import RunFailure
from fairtune.methods.base import Batch, Method, Moment
from fairtune.methods.rdrop.config import RDropConfig
from fairtune.methods.rdrop.loss import divergence, halves, twice

LOOKS = 10
"""Steps in which the two passes must have differed once. A head that starts at zero hides dropout in the first."""
NOISE = 1e-4
"""Where the same row stands in a batch can change its last bits; dropout changes far more."""


class RDrop(Method):
    config: RDropConfig

    def __init__(self, config: RDropConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._differed = False
        self._steps = 0

    def inputs(self, batch: Batch) -> Batch:
        return batch if self.config.idle else twice(batch)

    def penalty(self, outputs: Any, batch: Batch) -> Tensor | None:  # noqa: ARG002
        if self.config.idle:
            return None
        if not self._differed and self._steps < LOOKS:
            self._differed = passes_differ(outputs.logits.detach())
        return self.config.alpha * divergence(outputs.logits)

    def after_step(self, moment: Moment) -> None:
        if self.config.idle or self._differed or self._steps >= LOOKS:
            return
        self._steps += 1
        if self._steps == min(LOOKS, moment.total_steps):
            raise RunFailure(
                f"rdrop: in {self._steps} steps the two passes of an example never differed, so the model has no dropout and the "
                "penalty is 0 at twice the cost; use a checkpoint whose config has dropout, or leave rdrop out"
            )


def passes_differ(logits: Tensor) -> bool:
    """Whether the halves of a doubled batch's logits differ by more than rounding."""
    first, second = halves(logits).unbind()
    return bool((first - second).abs().max() > NOISE * torch.maximum(first.abs().max(), second.abs().max()))
