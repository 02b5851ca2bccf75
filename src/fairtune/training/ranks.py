"""The processes that share one run: which of them this is, what each takes of a batch, and what they agree on.

All of them build the same start and know the whole data, so little is said between them: gradients once per step, scores once per
evaluation, a flag or two per unit of work. What goes over the wire is tensors, never pickled objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, distributed, nn

from fairtune.core.errors import RunFailure, Stopped

BUCKET = 1 << 23
"""Elements of gradients that are summed at a time: large enough to be quick, small enough not to double the memory of a model."""
Item = TypeVar("Item")
Array = TypeVar("Array", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class Ranks:
    """The processes of a run.

    Args:
        rank: of this one, from 0; the first one writes all that is recorded.
        size: how many there are.
        shards: whether each holds only its part of the weights.
    """

    rank: int = 0
    size: int = 1
    shards: bool = False

    @property
    def alone(self) -> bool:
        return self.size == 1

    @property
    def leads(self) -> bool:
        """Whether this one writes what is recorded."""
        return self.rank == 0

    def own(self, rows: Array) -> Array:
        """What this process takes of a batch's rows: a piece of its order, as long as the others' but for one."""
        return rows if self.alone else np.array_split(rows, self.size)[self.rank]  # type: ignore[return-value]

    def counts(self, rows: int) -> list[int]:
        """How many of a batch's rows each process has."""
        return [len(part) for part in np.array_split(np.arange(rows), self.size)]

    def dealt(self, batches: Iterable[Item], check_stop: Callable[[], None]) -> Iterator[tuple[Item, bool]]:
        """This process's share of batches that are dealt out in turn, each with whether it counts.

        One that does not count is another's. It is there because with divided weights all must go through the model equally often.

        Args:
            check_stop: called as often in every process, however many batches it has, since they answer together.
        """
        batches = iter(batches)
        while turn := list(itertools.islice(batches, self.size)):
            check_stop()
            if self.rank < len(turn):
                yield turn[self.rank], True
            elif self.shards:
                yield turn[-1], False

    def agreed(self, flag: bool) -> bool:
        """Whether any of the processes says so."""
        return flag if self.alone else bool(self.most([int(flag)])[0])

    def check_together(self, check_stop: Callable[[], None]) -> None:
        """Stop in all processes at the same point if one was asked to, so that what they save is one state."""
        stopping = False
        try:
            check_stop()
        except Stopped:
            stopping = True
        if self.agreed(stopping):
            raise Stopped

    def most(self, numbers: Sequence[int]) -> list[int]:
        """Of each number the largest that any process has."""
        found = torch.tensor(numbers)
        if not self.alone:
            distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return [int(number) for number in found]

    def total(self, value: float) -> float:
        """The sum over all processes, in double precision."""
        if self.alone:
            return value
        found = torch.tensor([value], dtype=torch.float64)
        distributed.all_reduce(found)
        return float(found)

    def joined(self, array: Array) -> Array:
        """Arrays of which each process filled some entries, and left the others 0, as one."""
        if not self.alone:
            distributed.all_reduce(torch.from_numpy(array))
        return array

    def gathered(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all processes, one process's after the other's.

        Args:
            counts: how many each has.
        """
        if self.alone:
            return rows
        padded = rows.new_zeros(max(counts), *rows.shape[1:])
        padded[: counts[self.rank]] = rows[: counts[self.rank]]
        found = [torch.empty_like(padded) for _ in counts]
        distributed.all_gather(found, padded)
        return torch.cat([part[:count] for part, count in zip(found, counts, strict=True)])

    def messages(self, message: bytes) -> list[bytes]:
        """What each process has to say, in the order of their ranks."""
        if self.alone:
            return [message]
        sizes = self.gathered(torch.tensor([len(message)]), [1] * self.size).tolist()
        whole = self.gathered(torch.frombuffer(bytearray(message), dtype=torch.uint8), sizes).numpy().tobytes()
        ends = np.cumsum(sizes)
        return [whole[end - size : end] for end, size in zip(ends, sizes, strict=True)]

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Give every process the sum of all processes' gradients, in as few exchanges as memory allows.

        A parameter that no process has a gradient of has none afterwards either. Done once per step and by hand, not by
        DistributedDataParallel while it goes back: that needs every pass to go through its own forward, in equal numbers in every
        process. Here language models go through in halves, adversarial arms several times, pruned heads change shape, and a process
        that runs out of memory repeats its part; none of it needs to be known to this sum.
        """
        if self.alone or self.shards:  # sharded gradients were summed on their way back
            return
        there = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.uint8)
        distributed.all_reduce(there, distributed.ReduceOp.MAX)
        used = [parameter for parameter, one in zip(parameters, there.tolist(), strict=True) if one]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for bucket in _buckets([parameter.grad for parameter in used if parameter.grad is not None]):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            distributed.all_reduce(flat)
            start = 0
            for gradient in bucket:
                gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
                start += gradient.numel()

    def require_same(self, model: nn.Module) -> None:
        """Fail if the processes do not have the same weights, to the bit."""
        if self.alone or self.shards:
            return
        sums = torch.tensor([_bit_sum(tensor) for tensor in (*model.parameters(), *model.buffers())])
        most, least = sums.clone(), sums.clone()
        distributed.all_reduce(most, distributed.ReduceOp.MAX)
        distributed.all_reduce(least, distributed.ReduceOp.MIN)
        if not torch.equal(most, least):
            raise RunFailure(
                "the processes of the run no longer have the same weights; a method that draws or measures for itself in each of "
                "them cannot be used with devices_per_run"
            )


ALONE = Ranks()
"""A run of one process."""


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Gradients of one type in pieces of about one size."""
    for dtype in dict.fromkeys(gradient.dtype for gradient in gradients):
        bucket, size = list[Tensor](), 0
        for gradient in gradients:
            if gradient.dtype == dtype:
                bucket.append(gradient)
                size += gradient.numel()
                if size >= BUCKET:
                    yield bucket
                    bucket, size = [], 0
        if bucket:
            yield bucket


@torch.no_grad()
def _bit_sum(tensor: Tensor) -> int:
    """The sum of a tensor's bits, taken for whole numbers."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return int(tensor.detach().contiguous().view(whole).sum(dtype=torch.int64)) if tensor.numel() else 0
