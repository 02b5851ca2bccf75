"""Signs of life: what each worker of a study does just now, in `logs/worker-<slot>.json`, rewritten every few seconds.

The process that runs the study writes them, and removes them when it ends properly. They are no part of any run.

Whether one is fresh is judged by its beat, a count that grows with each writing, and by the reader's own clock: two machines
rarely agree on the time. Who looks only once has the file's time and nothing else, and is told `fresh` rather too long.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairtune.core.files import as_number, finite, parse_json, read_regular, write_atomically

BEAT_SECONDS = 2.0
"""Between two signs of a worker."""
BEATS, SECONDS = 5, 10.0
"""Beats, and seconds at least, after which a worker that says nothing is not fresh: a shared disk shows changes late."""
LARGEST = 1 << 16
"""Bytes of a sign; what is larger is none."""
MOST_SIGNS = 1000
LONGEST_TEXT = 500


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
        every: seconds between two signs.
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
    every: float = BEAT_SECONDS
    load: float | None = None
    memory_used: int | None = None
    memory: int | None = None
    temperature: float | None = None
    others: int | None = None


@dataclass(frozen=True)
class SeenSign:
    """A sign with how old it is.

    Args:
        age: seconds since it changed, by the reader's clock.
    """

    sign: WorkerSign
    age: float
    fresh: bool


def sign_file(logs: Path, worker: str) -> Path:
    return logs / f"worker-{worker}.json"


def write_sign(logs: Path, sign: WorkerSign) -> None:
    """Write a worker's sign; one that cannot be written is missed by nobody but who watches."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        write_atomically(sign_file(logs, sign.worker), json.dumps(finite(asdict(sign))).encode(), durable=False)


def remove_sign(logs: Path, worker: str) -> None:
    with contextlib.suppress(OSError):
        sign_file(logs, worker).unlink(missing_ok=True)


def remove_signs(logs: Path, label: str = "") -> None:
    """Remove whatever signs there are of workers whose names begin so."""
    with contextlib.suppress(OSError):
        for file in logs.glob(f"worker-{glob.escape(label)}*.json"):
            file.unlink(missing_ok=True)


def read_signs(home: Path) -> list[WorkerSign]:
    """The signs in a study's folder, in the order of their workers; what is no sign is left out."""
    return [sign for sign, _ in _read_all(home)]


class SignWatch:
    """Looks at the signs of a study again and again, and knows which of them still beat."""

    def __init__(
        self, home: Path, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._home, self._clock, self._now = home, clock, now
        self._seen: dict[str, tuple[WorkerSign, float]] = {}

    def read(self) -> list[SeenSign]:
        """The signs as they are now; whoever looks for the first time goes by the files' times."""
        found: dict[str, tuple[WorkerSign, float]] = {}
        for sign, written in _read_all(self._home):
            before = self._seen.get(sign.worker)
            if before is None:
                found[sign.worker] = sign, self._clock() - max(0.0, self._now() - written)
            elif (before[0].beat, before[0].time) == (sign.beat, sign.time):
                found[sign.worker] = before
            else:
                found[sign.worker] = sign, self._clock()
        self._seen = found
        return [self._judge(*one) for one in found.values()]

    def _judge(self, sign: WorkerSign, since: float) -> SeenSign:
        age = max(0.0, self._clock() - since)
        return SeenSign(sign, age, age <= max(SECONDS, BEATS * sign.every))


def _read_all(home: Path) -> list[tuple[WorkerSign, float]]:
    """Signs and the times of their files."""
    found = []
    try:
        with os.scandir(home / "logs") as entries:
            names = sorted(e.name for e in entries if e.name.startswith("worker-") and e.name.endswith(".json"))
    except OSError:
        return []
    for name in names[:MOST_SIGNS]:
        path = home / "logs" / name
        try:
            written = path.stat().st_mtime
            sign = _as_sign(parse_json(read_regular(path, LARGEST)), name[len("worker-") : -len(".json")])
        except (OSError, ValueError):
            continue
        if sign is not None:
            found.append((sign, written))
    return found


def _as_sign(value: Any, worker: str) -> WorkerSign | None:
    """A sign of what a file holds, which anybody may have written."""
    if not isinstance(value, dict) or value.get("worker") != worker:
        return None
    texts = {name: _text(value.get(name)) for name in ("device", "name", "run", "phase")}
    counts = {name: _count(value.get(name)) for name in ("done", "of", "beat", "memory_used", "memory", "others")}
    numbers = {name: as_number(value.get(name)) for name in ("time", "every", "load", "temperature")}
    return WorkerSign(
        worker=worker,
        device=texts["device"] or "",
        name=texts["name"],
        run=texts["run"],
        phase=texts["phase"],
        done=counts["done"],
        of=counts["of"],
        beat=counts["beat"] or 0,
        time=numbers["time"] or 0.0,
        every=min(60.0, max(0.1, numbers["every"] or BEAT_SECONDS)),
        load=numbers["load"],
        memory_used=counts["memory_used"],
        memory=counts["memory"],
        temperature=numbers["temperature"],
        others=counts["others"],
    )


def _text(value: Any) -> str | None:
    return value[:LONGEST_TEXT] if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None
