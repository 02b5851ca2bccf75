"""Batches computed side by side on a CPU, each by one thread.

Two threads within a batch wait for each other at every matrix product, and stall when another program takes one's core; batches
do not depend on each other. What a batch gives does not depend on how many are computed beside it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from fairtune.models.last_layer import narrow_last_layer
from fairtune.models.read_token import is_watched
from fairtune.tasks.tokens.encoded_splits import Indices

ENOUGH = 4
"""Batches for each thread from which on they are computed side by side; of fewer, the last ones would leave threads idle."""
Compute = Callable[[nn.Module, Indices], Tensor]


def compute_batches(network: nn.Module, compute: Compute, batches: Sequence[Indices]) -> Iterator[Tensor]:
    """What `compute` gives for each batch, in their order."""
    threads = torch.get_num_threads()
    if threads == 1 or len(batches) < ENOUGH * threads or not _can_be_shared(network):
        yield from (compute(network, rows) for rows in batches)
        return
    twins: SimpleQueue[nn.Module] = SimpleQueue()
    for _ in range(threads):
        twins.put(_twin(network))

    def compute_one(rows: Indices) -> Tensor:
        twin = twins.get()
        try:
            return compute(twin, rows)
        finally:
            twins.put(twin)

    pool = ThreadPoolExecutor(threads, "fairtune-batch", initializer=partial(torch.set_num_threads, 1))
    coming: deque[Future[Tensor]] = deque()
    try:
        coming.extend(pool.submit(compute_one, rows) for rows in batches)
        while coming:
            yield coming.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # a thread's number becomes the one that later threads begin with


def _can_be_shared(network: nn.Module) -> bool:
    """Whether twins of a network compute what it does: all of it is on the CPU, and nobody has put a function into a module."""
    return (
        isinstance(network, PreTrainedModel)
        and all(parameter.device.type == "cpu" for parameter in network.parameters())
        and not any("forward" in vars(part) or is_watched(part) for part in network.modules())
    )


def _twin(network: nn.Module) -> nn.Module:
    """Other modules with the same tensors: a module that is computing knows which token is read, which is one thread's alone."""
    tensors = (*network.parameters(), *network.buffers())
    twin = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
    narrow_last_layer(twin)
    return twin
