"""The heartbeat of a worker: what it does and how its device is doing, written every two seconds for live views.

A thread of the worker writes it. Nothing that goes wrong here, such as a full disk, affects the run.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from fairtune.core.machine import describe_gpu, nvml_held, visible_gpus
from fairtune.ledger.environment import cpu_name
from fairtune.ledger.worker_signs import BEAT_SECONDS, WorkerSign, remove_sign, write_sign

STOP_SECONDS = 5.0
"""How long to wait for the thread at the end; a disk that hangs must not hold up the study."""


class Heartbeat:
    """Writes the sign of this process into a study's folder of logs until it is left; then nothing is left of it.

    Args:
        worker: its name.
        threads: that it computes with.
    """

    def __init__(self, logs: Path, worker: str, device: str, threads: int = 1, every: float = BEAT_SECONDS) -> None:
        self._logs, self._sign, self._threads, self._every = logs, WorkerSign(worker, device), threads, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name="fairtune-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(STOP_SECONDS)
        remove_sign(self._logs, self._sign.worker)

    def note(self, run: str | None, values: Mapping[str, Any]) -> None:
        """What the worker does now.

        Args:
            run: that is under way; None where it has just ended.
            values: of its message.
        """
        phase = values.get("what") if values.get("phase") == "stage" else values.get("phase")
        done, of = values.get("done", values.get("step")), values.get("of", values.get("steps"))
        self._sign = replace(self._sign, run=run, phase=phase, done=done, of=of)

    def _keep_beating(self) -> None:
        process, beat, before = psutil.Process(), 0, (time.monotonic(), time.process_time())
        with nvml_held():
            while not self._ended.is_set():
                with contextlib.suppress(Exception):  # whatever it is, the study goes on
                    beat, now = beat + 1, (time.monotonic(), time.process_time())
                    used = (now[1] - before[1]) / max(1e-3, now[0] - before[0]) / self._threads
                    before = now
                    state = self._gpu_state() or {
                        "name": cpu_name(),
                        "load": round(min(1.0, used), 3),
                        "memory_used": process.memory_info().rss,
                        "memory": int(psutil.virtual_memory().total),
                    }
                    write_sign(self._logs, replace(self._sign, beat=beat, time=round(time.time(), 3), **state))
                self._ended.wait(self._every)

    def _gpu_state(self) -> dict[str, Any]:
        gpus = visible_gpus() if self._sign.device.startswith("cuda") else None
        if not gpus:
            return {}
        found = describe_gpu(gpus[0])  # a worker sees no other
        return {
            "name": found["name"],
            "load": None if found["utilisation"] is None else found["utilisation"] / 100,
            "memory_used": found["memory_used_bytes"],
            "memory": found["memory_bytes"],
            "temperature": found["temperature"],
            "others": found["other_processes"],
        }
