"""Memory that runs out: how it is recognised, how it is freed, and batches that are then scored in smaller parts."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch

from fairtune.core.errors import RunFailure

SAYINGS = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
"""What the messages of torch, of its CPU allocator and of CUDA's libraries have in common."""
Batch = TypeVar("Batch", bound=Any)


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(saying in str(error) for saying in SAYINGS)


def free_memory() -> None:
    """Free what is no longer used; an error's frames must be gone first, since they hold what failed."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def score_each(batches: Iterable[Batch], score: Callable[[Batch], None]) -> None:
    """Score every batch, a list or an array of rows; once memory runs out, in twice as many parts.

    Raises:
        RunFailure: one row alone does not fit.
    """
    parts = 1
    for batch in batches:
        waiting = deque(_cut(batch, parts))
        while waiting:
            part = waiting.popleft()
            try:
                score(part)
                continue
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            free_memory()  # here, where the error and the frames that it held are gone
            if len(part) == 1:
                raise RunFailure(
                    "memory ran out while one example alone was scored; use a shorter max_length, a smaller model or a device with "
                    "more memory"
                )
            parts *= 2
            waiting.extendleft(reversed(_cut(part, 2)))


def _cut(batch: Batch, parts: int) -> list[Batch]:
    size = -(-len(batch) // parts)
    return [batch[start : start + size] for start in range(0, len(batch), size)]
