"""What else the machine did while something was timed: load, clocks, temperature, and the work of other processes."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import psutil

from fairtune.core.machine import Gpu, busy_seconds, describe_gpu, nvml_held

EVERY_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""How often processes are counted and GPUs asked, which takes longer than looking at counters."""
BUSY_SHARE = 0.2
"""Of a core: a process that takes more counts as busy."""


class MachineWatch:
    """Samples the machine while a process is timed, in a thread, until it is left.

    Args:
        pid: the process that is timed; what it and this one do is not foreign.
        gpu: that it uses; None on a CPU.
    """

    def __init__(self, pid: int, gpu: Gpu | None = None) -> None:
        self._gpu = gpu
        self.samples: list[dict[str, Any]] = []
        self._own = [psutil.Process(pid), psutil.Process()]
        self._known: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fairtune-machine-watch", daemon=True)

    def __enter__(self) -> MachineWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _watch(self) -> None:
        with nvml_held():
            self._keep_watching()

    def _keep_watching(self) -> None:
        started = looked = time.monotonic()
        before = self._counters()
        self._foreign()
        while not self._stop.wait(EVERY_SECONDS):
            now = self._counters()
            passed = max(1e-3, now["time"] - before["time"])
            sample: dict[str, Any] = {
                "seconds": round(time.monotonic() - started, 1),
                "load": os.getloadavg()[0],
                "foreign_cores": max(0.0, (now["busy"] - before["busy"] - now["own"] + before["own"]) / passed),
                "stolen_cores": max(0.0, (now["stolen"] - before["stolen"]) / passed),
                "mhz": _frequency(),
                "celsius": _temperature(),
            }
            before = now
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                gpus = [] if self._gpu is None else [describe_gpu(self._gpu, {process.pid for process in self._own})]
                sample |= {"foreign_processes": self._foreign(), "gpus": gpus}
            self.samples.append(sample)

    def _counters(self) -> dict[str, float]:
        """Processor seconds since some time in the past, of all processes and of our own."""
        busy, stolen = busy_seconds()
        own = 0.0
        for process in self._own:
            try:
                spent = process.cpu_times()
                own += spent.user + spent.system
            except psutil.Error:
                continue
        return {"time": time.monotonic(), "busy": busy, "stolen": stolen, "own": own}

    def _foreign(self) -> int:
        """Other processes that took a good share of a core since they were counted last."""
        own, now, found = {process.pid for process in self._own}, {}, 0
        for process in psutil.process_iter(["pid", "cpu_times"]):
            spent = process.info["cpu_times"]
            if spent is None or process.info["pid"] in own:
                continue
            now[process.info["pid"]] = spent.user + spent.system
            found += now[process.info["pid"]] - self._known.get(process.info["pid"], 0.0) > BUSY_SHARE * LOOK_SECONDS
        first, self._known = not self._known, now
        return 0 if first else found


def _frequency() -> float | None:
    try:
        found = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return None
    return None if not found or not found.current else round(found.current)


def _temperature() -> float | None:
    """Of the hottest sensor; None where there is none."""
    try:
        sensors = psutil.sensors_temperatures()
    except (OSError, AttributeError):
        return None
    found = [reading.current for readings in sensors.values() for reading in readings if reading.current]
    return max(found, default=None)
