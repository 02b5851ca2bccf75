"""Processor seconds that the machine has spent, and those of this study's own processes: the rest is the work of others."""

from __future__ import annotations

import contextlib
import os
import time

import psutil

from fairtune.core.process_family import head_of_family


def busy_seconds() -> tuple[float, float]:
    """Processor seconds that all processes have used since the machine started, and those that its host took away."""
    times = psutil.cpu_times()
    idle, stolen = times.idle + getattr(times, "iowait", 0.0), getattr(times, "steal", 0.0)
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # Linux counts them in user time too
    return sum(times) - idle - stolen - guests, stolen


class ProcessorUse:
    """Shares of the machine's processor time since the last look."""

    def __init__(self) -> None:
        self._at, self._busy, self._own = time.monotonic(), sum(busy_seconds()), family_seconds()

    def look(self) -> dict[str, float | None]:
        """The load average, and the shares of all cores' time that were used at all and that others than this study used."""
        at, busy, own = time.monotonic(), sum(busy_seconds()), family_seconds()
        whole = max(1e-3, at - self._at) * (psutil.cpu_count() or 1)
        ours = sum(max(0.0, seconds - self._own.get(pid, 0.0)) for pid, seconds in own.items())
        used = max(0.0, busy - self._busy)
        self._at, self._busy, self._own = at, busy, own
        return {
            "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            "busy": round(min(1.0, used / whole), 3),
            "others": round(min(1.0, max(0.0, used - ours) / whole), 3),
        }


def family_seconds() -> dict[int, float]:
    """Processor seconds of each process of this study."""
    found: dict[int, float] = {}
    with contextlib.suppress(psutil.Error):
        head = psutil.Process(head_of_family())
        for process in (head, *head.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                spent = process.cpu_times()
                found[process.pid] = spent.user + spent.system
    return found
