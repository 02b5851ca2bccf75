"""Batches computed side by side on a CPU, each by one thread.

Two threads within a batch wait for each other at every matrix product, and stall when another program takes one's core; batches
do not depend on each other. What a batch gives does not depend on how many are computed beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor, nn

from fairtune.tasks.tokens.encoded_splits import Indices

ENOUGH = 4
"""Batches for each thread from which on they are computed side by side; of fewer, the last ones would leave threads idle."""
Compute = Callable[[nn.Module, Indices], Tensor]


def compute_batches(network: nn.Module, compute: Compute, batches: Sequence[Indices]) -> Iterator[Tensor]:
    """What `compute` gives for each batch, in their order."""
    threads = torch.get_num_threads()
    on_cpu = all(parameter.device.type == "cpu" for parameter in network.parameters())
    if threads == 1 or len(batches) < ENOUGH * threads or not on_cpu:
        yield from (compute(network, rows) for rows in batches)
        return
    pool = ThreadPoolExecutor(threads, "fairtune-batch", initializer=partial(torch.set_num_threads, 1))
    coming: deque[Future[Tensor]] = deque()
    try:
        coming.extend(pool.submit(compute, network, rows) for rows in batches)
        while coming:
            yield coming.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # a thread's number becomes the one that later threads begin with
