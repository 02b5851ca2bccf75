"""The heartbeat of a study's workers: what each does and how its device is, written every two seconds for who watches.

A thread of the process that started the workers writes them, so that training pays nothing for it. Nothing that goes wrong here,
such as a full disk, concerns the study.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from fairtune.core.files import remove_leftovers
from fairtune.core.gpus import Gpu, describe_gpu, nvml_held
from fairtune.core.machine import available_cores
from fairtune.execution.executors.slots import CPU, Slot
from fairtune.ledger.environment import cpu_name
from fairtune.ledger.worker_signs import BEAT_SECONDS, WorkerSign, remove_sign, remove_signs, write_sign

FAMILY_BEATS = 5
"""Beats after which the processes that a worker started are looked for again, which takes longer than all the rest."""
ALONE = "train"
"""The phase in which a worker has none."""
STOP_SECONDS = 5.0
"""How long to wait for the thread at the end; a disk that hangs must not hold up the study."""


@dataclass
class _Watched:
    """A worker, with what it last said of itself."""

    slot: Slot
    process: psutil.Process | None
    sign: WorkerSign
    family: list[psutil.Process] = field(default_factory=list)
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
        process = None
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
        self._workers[slot.name] = _Watched(slot, process, WorkerSign(slot.name, slot.device, every=self._every))
        if self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._keep_beating, name="fairtune-heartbeat", daemon=True)
            self._thread.start()

    def note(self, slot: Slot, run: str | None, values: Mapping[str, Any]) -> None:
        """A worker has said what it does.

        Args:
            run: that is under way; None where it has just ended.
            values: of its message.
        """
        watched = self._workers.get(slot.name)
        if watched is None:
            return
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
        if not self._label:  # else other machines may be writing
            remove_leftovers(self._logs)
        with nvml_held():
            while not self._ended.is_set():
                with contextlib.suppress(Exception):  # whatever it is, the study goes on
                    self._write_all()
                self._ended.wait(self._every)

    def _write_all(self) -> None:
        self._beat += 1
        watched = dict(self._workers)
        gpus: dict[Gpu, dict[str, Any]] = {}
        for name, worker in watched.items():
            for gpu in worker.slot.gpus:
                gpus[gpu] = gpus[gpu] if gpu in gpus else describe_gpu(gpu)
            own = [gpus[gpu] for gpu in worker.slot.gpus]
            state = self._cpu_state(worker) if worker.slot.device == CPU else _gpu_state(own)
            if self._ended.is_set():
                return
            write_sign(self._logs, replace(worker.sign, beat=self._beat, time=round(time.time(), 3), **state))
            if name not in self._workers:  # it ended meanwhile
                remove_sign(self._logs, name)

    def _cpu_state(self, worker: _Watched) -> dict[str, Any]:
        """What a worker and the processes that it started take of the machine."""
        state = {"name": cpu_name(), "memory": int(psutil.virtual_memory().total)}
        if worker.process is None:
            return state
        if worker.sign.phase == ALONE:
            worker.family = []
        elif self._beat % FAMILY_BEATS == 1:
            with contextlib.suppress(psutil.Error):
                worker.family = worker.process.children(recursive=True)
        seconds, resident = 0.0, 0
        for process in (worker.process, *worker.family):
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                seconds += times.user + times.system
                resident += process.memory_info().rss
        now, before = time.monotonic(), worker.used
        worker.used = now, seconds
        if before is not None and now > before[0] and seconds >= before[1]:
            cores = (worker.slot.threads or available_cores()) * worker.slot.devices
            state["load"] = round(min(1.0, (seconds - before[1]) / (now - before[0]) / cores), 3)
        return state | {"memory_used": resident}


def _gpu_state(gpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the GPUs of a worker are, all of them taken together."""
    if not gpus:
        return {}

    def known(name: str) -> list[Any]:
        return [gpu[name] for gpu in gpus if gpu[name] is not None]

    loads = known("utilisation")
    return {
        "name": gpus[0]["name"],
        "load": sum(loads) / len(loads) / 100 if loads else None,
        "memory_used": sum(known("memory_used_bytes")) if known("memory_used_bytes") else None,
        "memory": sum(known("memory_bytes")) if known("memory_bytes") else None,
        "temperature": max(known("temperature"), default=None),
        "others": sum(known("other_processes")) if known("other_processes") else None,
    }
