"""The heartbeat of a study's workers: what each one does and how its device is doing, written every two seconds for live views.

A thread of the process that started the workers writes it, so training pays nothing for it. Nothing that goes wrong here, such as a
full disk, affects the study.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from fairtune.core.gpus import describe_gpu, nvml_held
from fairtune.core.machine import available_cores
from fairtune.execution.executors.slots import CPU, Slot
from fairtune.ledger.environment import cpu_name
from fairtune.ledger.worker_signs import BEAT_SECONDS, WorkerSign, remove_sign, remove_signs, write_sign

STOP_SECONDS = 5.0
"""How long to wait for the thread at the end; a disk that hangs must not hold up the study."""


@dataclass
class _Watched:
    """A worker, with what it last said of itself and the processor seconds it had used when."""

    slot: Slot
    pid: int
    sign: WorkerSign
    used: tuple[float, float] | None = None


class Heartbeat:
    """Writes the signs of a study's workers into its folder of logs while they work.

    Args:
        label: what the names of these workers begin with, where other machines have some too.
    """

    def __init__(self, logs: Path, every: float = BEAT_SECONDS, label: str = "") -> None:
        self._logs, self._every, self._label = logs, every, label
        self._workers: dict[str, _Watched] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._beat = 0

    def add(self, slot: Slot, pid: int) -> None:
        """A worker has started."""
        self._workers[slot.name] = _Watched(slot, pid, WorkerSign(slot.name, slot.device, every=self._every))
        if self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._keep_beating, name="fairtune-heartbeat", daemon=True)
            self._thread.start()

    def note(self, slot: Slot, run: str | None, values: Mapping[str, Any]) -> None:
        """A worker has said what it does.

        Args:
            run: that is under way; None where it has just ended.
            values: of its message.
        """
        if (watched := self._workers.get(slot.name)) is not None:
            phase = values.get("what") if values.get("phase") == "stage" else values.get("phase")
            done, of = values.get("done", values.get("step")), values.get("of", values.get("steps"))
            watched.sign = replace(watched.sign, run=run, phase=None if run is None else phase, done=done, of=of)

    def remove(self, slot: Slot) -> None:
        """A worker has ended."""
        self._workers.pop(slot.name, None)
        remove_sign(self._logs, slot.name)

    def stop(self) -> None:
        """The study ends; nothing is left of its signs."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            remove_signs(self._logs, self._label)
        self._workers.clear()

    def _keep_beating(self) -> None:
        remove_signs(self._logs, self._label)  # of an earlier process of this study that was killed
        with nvml_held():
            while not self._ended.is_set():
                with contextlib.suppress(Exception):  # whatever it is, the study goes on
                    self._write_all()
                self._ended.wait(self._every)

    def _write_all(self) -> None:
        self._beat += 1
        own = {os.getpid(), *(worker.pid for worker in list(self._workers.values()))}
        for name, worker in dict(self._workers).items():
            state = _cpu_state(worker) if worker.slot.device == CPU else _gpu_state(worker, own)
            if self._ended.is_set():
                return
            write_sign(self._logs, replace(worker.sign, beat=self._beat, time=round(time.time(), 3), **state))
            if name not in self._workers:  # it ended meanwhile
                remove_sign(self._logs, name)


def _cpu_state(worker: _Watched) -> dict[str, Any]:
    """What a worker takes of the machine."""
    state = {"name": cpu_name(), "memory": int(psutil.virtual_memory().total)}
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(worker.pid)
        times, now, before = process.cpu_times(), time.monotonic(), worker.used
        seconds, state["memory_used"] = times.user + times.system, process.memory_info().rss
        worker.used = now, seconds
        if before is not None and now > before[0]:
            cores = worker.slot.threads or available_cores()
            state["load"] = round(min(1.0, (seconds - before[1]) / (now - before[0]) / cores), 3)
    return state


def _gpu_state(worker: _Watched, own: set[int]) -> dict[str, Any]:
    if worker.slot.gpu is None:
        return {}
    found = describe_gpu(worker.slot.gpu, own)
    return {
        "name": found["name"],
        "load": None if found["utilisation"] is None else found["utilisation"] / 100,
        "memory_used": found["memory_used_bytes"],
        "memory": found["memory_bytes"],
        "temperature": found["temperature"],
        "others": found["other_processes"],
    }
