"""Signs of life: what each worker of a study does just now, in `logs/worker-<slot>.json`, rewritten every few seconds.

The process that runs the study writes them, and removes them when it ends properly. They are no part of any run.

Whether one is fresh is judged by its beat, a count that grows with each writing, and by the reader's own clock: two machines
rarely agree on the time. A first look has the file's time and nothing else, and may call a sign fresh for rather too long.
"""

from __future__ import annotations

import contextlib
import glob
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from fairtune.core.files import finite, read_json, write_atomically

BEAT_SECONDS = 2.0
"""Between two signs of a worker."""
SILENCE_SECONDS = 10.0
"""Without a beat, after which a worker is not fresh: a shared disk shows changes late."""


@dataclass(frozen=True)
class WorkerSign:
    """What a worker does, and how its device is.

    Args:
        worker: its slot, such as `cpu-1` or `cuda-0`; its log is `worker-<slot>.log`.
        device, name: such as `cuda:0`, and what it is called.
        run: `arm/seed-n` that is under way; None between two.
        phase: in words, or as runs report it (`train`, `evaluate`); done and of are counts of it.
        beat: grows with each writing.
        time: by the writer's clock, in seconds since 1970.
        load: share of the device's time that is used, 0 to 1; of a CPU, what the worker uses of the cores that are its own.
        memory_used, memory: bytes used on the device, and all it has; of a CPU, the worker's own, and the machine's.
        temperature: degrees Celsius.
        others: processes of others on the device.
    """

    worker: str
    device: str
    name: str | None = None
    run: str | None = None
    phase: str | None = None
    done: int | None = None
    of: int | None = None
    beat: int = 0
    time: float = 0.0
    load: float | None = None
    memory_used: int | None = None
    memory: int | None = None
    temperature: float | None = None
    others: int | None = None


class SeenSign(NamedTuple):
    """A sign with the seconds since it changed, by the reader's clock."""

    sign: WorkerSign
    age: float
    fresh: bool


def sign_file(logs: Path, worker: str) -> Path:
    return logs / f"worker-{worker}.json"


def write_sign(logs: Path, sign: WorkerSign) -> None:
    """Write a worker's sign; one that cannot be written is missed in views alone."""
    with contextlib.suppress(OSError):
        write_atomically(sign_file(logs, sign.worker), json.dumps(finite(asdict(sign))).encode(), durable=False)


def remove_sign(logs: Path, worker: str) -> None:
    with contextlib.suppress(OSError):
        sign_file(logs, worker).unlink()


def remove_signs(logs: Path, label: str) -> None:
    """Remove the signs of workers whose names begin so."""
    for file in logs.glob(f"worker-{glob.escape(label)}*.json"):
        with contextlib.suppress(OSError):
            file.unlink()


def read_signs(home: Path) -> list[WorkerSign]:
    """The signs in a study's folder, in the order of their workers."""
    return [sign for sign, _ in _read_all(home)]


class SignWatch:
    """Looks at the signs of a study again and again, and knows which of them still beat."""

    def __init__(
        self, home: Path, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._home, self._clock, self._now = home, clock, now
        self._seen: dict[str, tuple[WorkerSign, float]] = {}

    def read(self) -> list[SeenSign]:
        """The signs as they are now; a first look goes by the files' times."""
        seen, self._seen, found = self._seen, {}, []
        for sign, written in _read_all(self._home):
            before = seen.get(sign.worker)
            if before is None:
                since = self._clock() - max(0.0, self._now() - written)
            else:
                beats = (before[0].beat, before[0].time) != (sign.beat, sign.time)
                since = self._clock() if beats else before[1]
            self._seen[sign.worker] = sign, since
            age = max(0.0, self._clock() - since)
            found.append(SeenSign(sign, age, age <= SILENCE_SECONDS))
        return found


def _read_all(home: Path) -> list[tuple[WorkerSign, float]]:
    """Signs and the times of their files; what is none is left out."""
    found = []
    for path in sorted((home / "logs").glob("worker-*.json")):
        with contextlib.suppress(OSError, TypeError):
            found.append((WorkerSign(**(read_json(path) or {})), path.stat().st_mtime))
    return found
