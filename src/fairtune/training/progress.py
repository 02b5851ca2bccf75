"""Where a run stands: its phase and counts, and its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

TRAIN, EVALUATE, SCORE, DONE = "train", "evaluate", "score", "done"


@dataclass
class Progress:
    """What a run has done so far; all of it is part of a saved state.

    Args:
        micro_batch: the most examples that go through the model at once, where memory ran out for a whole batch.
    """

    phase: str = TRAIN
    unit: int = 0
    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    best_step: int | None = None
    best_score: float | None = None
    since_best: int = 0
    evaluations: int = 0
    stopped_early: bool = False
    examples: int = 0
    tokens: int = 0
    padding: int = 0
    skipped_steps: int = 0
    epoch_seconds: list[float] = field(default_factory=list)
    largest_batch: int = 0
    memory: dict[str, int] = field(default_factory=dict)
    micro_batch: int | None = None


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@dataclass
class Clock:
    """Seconds by purpose: data, step, method, validation, test, checkpoint, and the total of all units of work.

    Attributes:
        last: how long each purpose took the last time.
        processor: seconds that this process had the processor, by purpose.
        parts: seconds of the parts of steps (forward, backward, optimizer), while `splits` is set: to take a step apart, the
            device has to be waited for in its midst.
    """

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    splits: bool = False

    @contextmanager
    def measure(self, purpose: str) -> Iterator[None]:
        synchronize(self.device)
        start, had = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            synchronize(self.device)
            spent, had = time.perf_counter() - start, time.process_time() - had
            self.last[purpose] = spent
            self.seconds[purpose] = self.seconds.get(purpose, 0.0) + spent
            self.processor[purpose] = self.processor.get(purpose, 0.0) + had

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure a part of a step, where parts are asked for."""
        if not self.splits:
            yield
            return
        synchronize(self.device)
        start = time.perf_counter()
        try:
            yield
        finally:
            synchronize(self.device)
            self.parts[name] = self.parts.get(name, 0.0) + time.perf_counter() - start
