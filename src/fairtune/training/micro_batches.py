"""Batches that do not fit into memory: the step is begun again with its batches in smaller parts, which stay for the run.

The examples of a step and the mean over them stay the same, so that a run that was cut trains as it would have; only dropout draws
otherwise, and sums are rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.core.out_of_memory import free_memory, is_out_of_memory
from fairtune.core.seeding import restore_random_state
from fairtune.methods.base import Batch
from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.batch_parts import cut_rows, forward_backward, why_whole
from fairtune.training.compiled_layers import pad_batch
from fairtune.training.progress import RunInProgress
from fairtune.training.shared_batches import SharedBatch

EVENT = "micro_batch"


@dataclass
class MicroBatches:
    """The batches of a run, as small as its memory asks for.

    Args:
        tell: takes the examples of a part from now on, and how many a part had for which memory ran out.
        lengths: to which batches are padded, each to the next; none pads a batch to its longest text.
        refusal: why batches are not cut, whatever the methods say; None cuts them.
    """

    run: RunInProgress
    tell: Callable[[int, int], None]
    lengths: Sequence[int] = ()
    refusal: str | None = None
    _places: list[tuple[nn.Module, str]] = field(default_factory=list, init=False)

    def batches(self, chosen: Sequence[Indices]) -> list[list[Batch]]:
        """The batches of a step, each in its parts."""
        run, most = self.run, self.run.progress.micro_batch
        found = [[run.objective.batch(part, run.device) for part in cut_rows(rows, most)] for rows in chosen]
        return [[pad_batch(batch, self.lengths) for batch in parts] for parts in found] if self.lengths else found

    def forward_backward(
        self, chosen: Sequence[Indices], batches: Sequence[Sequence[Batch]], shared: Sequence[SharedBatch] = ()
    ) -> float:
        """The gradients of a step and its loss; begun again in smaller parts as often as memory runs out.

        Args:
            shared: each batch among the processes that share it; the others need not know that this one begins again.
        """
        run, now = self.run, self.run.progress
        before = self._buffers()
        largest, memory = now.largest_batch, dict(now.memory)
        while True:
            try:
                return float(forward_backward(run, batches, shared))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            # Here the error is gone, and with it the frames that held the tensors of the attempt.
            for parameter in run.model.parameters():
                parameter.grad = None
            self._put_back(before)
            now.largest_batch, now.memory = largest, dict(memory)
            restore_random_state(run.random)
            batches = []
            free_memory()
            self._halve(chosen)
            batches = self.batches(chosen)

    def _halve(self, chosen: Sequence[Indices]) -> None:
        now = self.run.progress
        there = max(len(part) for rows in chosen for part in cut_rows(rows, now.micro_batch))
        ran_out = f"memory ran out at step {now.step + 1} of {self.run.total_steps}"
        if there == 1:
            raise RunFailure(
                f"{ran_out} with one example alone; use a shorter max_length, `gradient_checkpointing: true`, a smaller model, or "
                "a device with more memory"
            )
        why = self.refusal or why_whole(self.run.methods)
        if why is not None:
            raise RunFailure(
                f"{ran_out} with {there} examples at once, which must stay together: {why}; use a smaller batch_size, a shorter "
                "max_length or `gradient_checkpointing: true`"
            )
        now.micro_batch = -(-there // 2)
        self.tell(now.micro_batch, there)

    def _buffers(self) -> list[Tensor]:
        """What a pass may have changed besides gradients: the state that the model itself keeps, such as a map."""
        if not self._places:
            self._places = [
                (module, name)
                for module in self.run.model.modules()
                for name, buffer in module._buffers.items()
                if buffer is not None and name not in module._non_persistent_buffers_set
            ]
        return [self._buffer(place).clone() for place in self._places]

    def _put_back(self, buffers: Sequence[Tensor]) -> None:
        for place, before in zip(self._places, buffers, strict=True):
            self._buffer(place).copy_(before)

    @staticmethod
    def _buffer(place: tuple[nn.Module, str]) -> Any:
        module, name = place
        return module._buffers[name]
