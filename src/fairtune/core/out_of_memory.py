"""Memory that runs out: how it is known, how it is freed, and batches that are scored in smaller parts when it does."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from fairtune.core.errors import RunFailure

SAYINGS = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
"""What the messages of torch, of its CPU allocator and of CUDA's libraries have in common."""
Batch = TypeVar("Batch", bound=Any)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(saying in str(error) for saying in SAYINGS)


def free_memory() -> None:
    """Let go of all that nobody uses; an error's frames must be gone before, since they hold what failed."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


@dataclass
class ScoredParts:
    """Batches that are scored, each in so many parts; in twice as many from the one on for which memory runs out.

    Args:
        tell: takes the new number of parts.
        cuts: False lets the error through.
    """

    parts: int = 1
    tell: Callable[[int], None] = lambda _: None
    cuts: bool = True

    def each(self, batches: Iterable[Batch], score: Callable[[Batch], None]) -> None:
        """Score every batch, a list or an array of what is scored.

        Raises:
            RunFailure: one row alone does not fit.
        """
        for batch in batches:
            waiting = deque(_cut(batch, self.parts))
            while waiting:
                part = waiting.popleft()
                try:
                    score(part)
                    continue
                except Exception as error:
                    if not self.cuts or not is_out_of_memory(error):
                        raise
                free_memory()  # here, where the error and the frames that it held are gone
                if len(part) == 1:
                    raise RunFailure(
                        "memory ran out while one example alone was scored; use a shorter max_length, a smaller model or a "
                        "device with more memory"
                    )
                self.parts *= 2
                self.tell(self.parts)
                waiting.extendleft(reversed(list(_cut(part, 2))))


def _cut(batch: Batch, parts: int) -> Iterator[Batch]:
    size = -(-len(batch) // parts)
    for start in range(0, len(batch), size):
        yield batch[start : start + size]
