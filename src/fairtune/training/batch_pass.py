"""One batch on its way through the model and back, with the methods around it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from fairtune.methods.base import Batch
from fairtune.training.memory import count_activations
from fairtune.training.progress import RunInProgress
from fairtune.training.shared_batches import PlaceInBatch


@dataclass(frozen=True)
class BatchPass:
    """What `around_backward` is given.

    Args:
        share: of the optimizer step's examples that are in this batch, or in this part of one.
        emphasis: what a part's loss is multiplied by where it is not a mean over examples, so that the parts' shares make it
            the whole batch's.
        place: of the rows in a batch that several processes share.
    """

    run: RunInProgress
    batch: Batch
    share: float
    emphasis: float = 1.0
    place: PlaceInBatch | None = None

    @property
    def model(self) -> nn.Module:
        return self.run.model

    @property
    def scale(self) -> float:
        scaler = self.run.accelerator.scaler
        return self.share * (1.0 if scaler is None else float(scaler.get_scale()))

    @property
    def step(self) -> int:
        return self.run.progress.step

    @property
    def total_steps(self) -> int:
        return self.run.total_steps

    @property
    def epoch(self) -> int:
        return self.run.progress.epoch

    @property
    def epochs(self) -> int:
        return math.ceil(self.run.total_steps / self.run.steps_per_epoch)

    def uniform(self, tokens: int, width: int) -> Tensor:
        if self.place is None:
            return torch.rand(tokens, width, device=self.run.device)
        return self.place.uniform(tokens, width).to(self.run.device)

    def forward(self) -> Tensor:
        with self.run.clock.part("forward"), count_activations(self.run, self.batch["input_ids"].numel()):
            outputs = self.run.objective.outputs(self.run.model, self.batch)
            loss: Tensor = outputs.loss
            for method in self.run.methods:
                own = method.loss(outputs, self.batch)
                loss = loss if own is None else own
            if self.emphasis != 1.0:
                loss = loss * self.emphasis
            for method in self.run.methods:
                more = method.penalty(outputs, self.batch)
                loss = loss if more is None else loss + more
        return loss

    def forward_backward(self) -> Tensor:
        """Forward and backward, with all that the methods put around them; returns the loss."""
        proceed: Callable[[], Tensor] = self._plain
        for method in reversed(self.run.methods):
            proceed = partial(method.around_backward, self, proceed)
        return proceed()

    def _plain(self) -> Tensor:
        loss = self.forward()
        self.backward(loss)
        return loss.detach()

    def backward(self, loss: Tensor) -> None:
        with self.run.clock.part("backward"):
            self.run.accelerator.backward(loss * self.share if self.share != 1.0 else loss)
