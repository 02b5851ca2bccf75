"""How a run's device is doing while the run is under way: a thread looks every few seconds and writes into the run's events.

On a GPU: its use, heat, clocks, memory and foreign processes; on a CPU, what others take of it. A report judges by that whether
a run's times mean anything. Nothing that goes wrong here, such as a broken driver, affects the run.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import psutil

from fairtune.core.locks import require_held
from fairtune.core.machine import busy_seconds, describe_gpu, nvml_held, visible_gpus
from fairtune.ledger.events import EventLog

EVERY_SECONDS = 5.0
STOP_SECONDS = 5.0
"""How long to wait for the thread at the end; a driver that hangs must not hold up a run."""
CONSTANT = ("name", "memory_bytes")
"""What environment.json says once and for all."""


class DeviceSamples:
    """Writes samples of a run's device into its events until it is left.

    Args:
        device: of the run; its GPUs are all that this process sees.
        folder: the run's, in which nothing is written once another process has it.
    """

    def __init__(self, log: EventLog, device: str, folder: Path) -> None:
        self._log, self._device, self._folder = log, device, folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_sampling, name="fairtune-device-samples", daemon=True)

    def __enter__(self) -> DeviceSamples:
        with contextlib.suppress(RuntimeError):  # the system has no thread left
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _keep_sampling(self) -> None:
        with contextlib.suppress(Exception), nvml_held():
            gpus = (visible_gpus() or []) if self._device.startswith("cuda") else []
            use = ProcessorUse()
            while not self._ended.wait(EVERY_SECONDS):
                with contextlib.suppress(Exception):  # whatever it is, the run goes on
                    found = [describe_gpu(gpu).items() for gpu in gpus]
                    known = [{k: v for k, v in one if k not in CONSTANT and v is not None and v != []} for one in found]
                    sample = {"gpus": known} if gpus else use.look()
                    require_held(self._folder)
                    self._log.write_sample(**sample)


class ProcessorUse:
    """Shares of the machine's processor time since the last look."""

    def __init__(self) -> None:
        self._at, self._busy, self._own = time.monotonic(), sum(busy_seconds()), study_seconds()

    def look(self) -> dict[str, float]:
        """The load average, and the shares of all cores' time that were used at all and that others than this study used."""
        at, busy, own = time.monotonic(), sum(busy_seconds()), study_seconds()
        whole = max(1e-3, at - self._at) * (psutil.cpu_count() or 1)
        ours = sum(max(0.0, seconds - self._own.get(pid, 0.0)) for pid, seconds in own.items())
        used = max(0.0, busy - self._busy)
        self._at, self._busy, self._own = at, busy, own
        return {
            "load_average": round(os.getloadavg()[0], 2),
            "busy": round(min(1.0, used / whole), 3),
            "others": round(min(1.0, max(0.0, used - ours) / whole), 3),
        }


def study_seconds() -> dict[int, float]:
    """Processor seconds of this process, of the one that started it, and of that one's other workers."""
    found: dict[int, float] = {}
    with contextlib.suppress(psutil.Error):
        head = psutil.Process(os.getppid())
        for process in (head, *head.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                spent = process.cpu_times()
                found[process.pid] = spent.user + spent.system
    return found
