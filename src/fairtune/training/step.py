"""The gradients of one optimizer step: batches through the model and back, with the methods around them.

A step may take several batches (`accumulate`). Where memory runs out it starts over with its batches in smaller parts, which stay
for the rest of the run. Either way the gradient is that of the mean loss over all examples of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.core.out_of_memory import free_memory, is_out_of_memory
from fairtune.core.seeding import restore_random_state
from fairtune.methods.base import Batch
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.memory import count_activations

if TYPE_CHECKING:
    from fairtune.training.loop import TrainingRun

EVENT = "micro_batch"
"""Says in a run's events that from here on batches go through the model in smaller parts."""


@dataclass(frozen=True)
class BatchPass:
    """One batch on its way through the model; what `around_backward` is given.

    Args:
        share: of the step's examples that are in this batch.
    """

    run: TrainingRun
    batch: Batch
    share: float

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

    def forward(self) -> Tensor:
        with self.run.clock.part("forward"), count_activations(self.run, self.batch["input_ids"].numel()):
            outputs = self.run.objective.outputs(self.run.model, self.batch)
            loss: Tensor = outputs.loss
            for method in self.run.methods:
                own = method.loss(outputs, self.batch)
                loss = loss if own is None else own
            for method in self.run.methods:
                more = method.penalty(outputs, self.batch)
                loss = loss if more is None else loss + more
        return loss

    def backward(self, loss: Tensor) -> None:
        with self.run.clock.part("backward"):
            self.run.accelerator.backward(loss * self.share if self.share != 1.0 else loss)

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


def make_batches(run: TrainingRun, chosen: Sequence[Indices]) -> list[Batch]:
    """The batches of a step, in parts of at most `micro_batch` examples where memory ran out before."""
    most = run.progress.micro_batch or run.train.batch_size
    parts = [part for rows in chosen for part in np.array_split(rows, math.ceil(len(rows) / most))]
    return [run.objective.batch(part, run.device) for part in parts]


def accumulate_gradients(run: TrainingRun, chosen: Sequence[Indices], batches: Sequence[Batch]) -> float:
    """Leave the gradients of a step's mean loss in the parameters; returns that loss.

    Args:
        batches: what `make_batches` made of the chosen rows.
    """
    largest, memory = run.progress.largest_batch, dict(run.progress.memory)
    while True:
        try:
            return _pass_all(run, batches)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        # Here the error is gone, and with it the frames that held the tensors of the attempt.
        batches = []
        run.model.zero_grad(set_to_none=True)
        run.progress.largest_batch, run.progress.memory = largest, dict(memory)  # what was counted before the attempt
        free_memory()
        _halve(run, chosen)
        restore_random_state(run.random)
        batches = make_batches(run, chosen)


def _pass_all(run: TrainingRun, batches: Sequence[Batch]) -> float:
    examples = sum(len(batch["labels"]) for batch in batches)
    total = torch.zeros((), device=run.device)
    for batch in batches:
        share = len(batch["labels"]) / examples
        for method in run.methods:
            batch = method.inputs(batch)
        total += BatchPass(run, batch, share).forward_backward() * share
    return float(total)


def _halve(run: TrainingRun, chosen: Sequence[Indices]) -> None:
    now, most = run.progress, max(len(rows) for rows in chosen)
    size = min(now.micro_batch or most, most)
    ran_out = f"memory ran out at step {now.step + 1} of {run.total_steps}"
    if size == 1:
        raise RunFailure(
            f"{ran_out} with one example alone; use a shorter max_length, `gradient_checkpointing: true`, a smaller model, or a "
            "device with more memory"
        )
    if run.uncut:
        raise RunFailure(
            f"{ran_out} with {size} examples at once, which must stay together: {run.uncut}; use a smaller batch_size, a shorter "
            "max_length or `gradient_checkpointing: true`"
        )
    now.micro_batch = math.ceil(size / 2)
    run.log.write(EVENT, now.unit, step=now.step + 1, size=now.micro_batch, was=size)
    run.warn(
        f"memory ran out at step {now.step + 1} with {size} examples at once; from there on at most {now.micro_batch} go through "
        "the model at once, and a step still learns from the same examples"
    )
