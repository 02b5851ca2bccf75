"""Time by purpose, with the device synchronised at both ends so that a figure covers all the work it names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch


def synchronize(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@dataclass
class Clock:
    """Seconds by purpose: data, step, method, validation, test, checkpoint, and the total of all units of work."""

    device: torch.device
    seconds: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    """How long each purpose took the last time."""

    @contextmanager
    def measure(self, purpose: str) -> Iterator[None]:
        synchronize(self.device)
        start = time.perf_counter()
        try:
            yield
        finally:
            synchronize(self.device)
            spent = time.perf_counter() - start
            self.last[purpose] = spent
            self.seconds[purpose] = self.seconds.get(purpose, 0.0) + spent
