"""Batches computed side by side on a CPU, each by one thread.

Two threads within a batch wait for each other at every matrix product, and stall when another program takes one's core; batches
do not depend on each other. What a batch gives does not depend on how many are computed at the same time.
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

from fairtune.tasks.tokens.encoded_splits import Indices

ENOUGH = 4
"""Batches for each thread from which on they are computed side by side; of fewer, the last ones would leave threads idle."""
Compute = Callable[[nn.Module, Indices], Tensor]


def compute_batches(network: nn.Module, compute: Compute, batches: Sequence[Indices]) -> Iterator[Tensor]:
    """What `compute` gives for each batch, in their order."""
    threads = torch.get_num_threads()
    if threads == 1 or len(batches) < ENOUGH * threads or not _has_twins(network):
        yield from (compute(network, rows) for rows in batches)
        return
    twins: SimpleQueue[nn.Module] = SimpleQueue()
    tensors = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    for _ in range(
        threads
    ):  # other modules with the same tensors: some architectures set attributes while they compute
        twins.put(copy.deepcopy(network, dict(tensors)))

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


def _has_twins(network: nn.Module) -> bool:
    """Whether copies of a network compute what it does: it is stock, on the CPU, and nothing that copies share changes."""
    return (
        isinstance(network, PreTrainedModel)
        and all(parameter.device.type == "cpu" for parameter in network.parameters())
        and not any(_is_own(part) for part in network.modules())
    )


def _is_own(part: nn.Module) -> bool:
    """Whether a module has a function of the user's, or rotary embeddings that change a buffer as texts get longer."""
    hooks = (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
    hooked = any(getattr(hook, "__name__", "") != "output_capturing_hook" for hook in hooks)  # transformers' own
    return "forward" in vars(part) or hooked or getattr(part, "rope_type", None) in ("dynamic", "longrope")
