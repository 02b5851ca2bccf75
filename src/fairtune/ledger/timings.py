"""Times: a run's own, in the form in which they are published (`timing.json`), and a study's timing sessions.

A session is one sealed file under `timing/`, never changed, never replaced.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from fairtune.core.files import read_sealed
from fairtune.ledger.events import SAMPLE
from fairtune.ledger.folders import explain, write_record

FIELDS = ("total_seconds", "per_epoch_avg", "per_step_avg", "validation_total", "step_cv", "gpu_utilization")
WARM_UP = 2
"""First steps of a run that no spread or curve of step times counts: memory is allocated and kernels are chosen in them."""
FOLDER = "timing"
AGAIN = "A/A"
"""Under which name the second copy of the reference goes."""


def run_times(result: Mapping[str, Any], events: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """The times of a finished run in seconds; None if it recorded none.

    What is fitted at once has a total and no steps to average over.

    Args:
        events: those that count, for the spread of step times and the use of GPUs; both are None without them.
    """
    seconds = result.get("seconds") or {}
    if "total" not in seconds:
        return None
    training = sum(float(seconds.get(name, 0.0)) for name in ("step", "data", "method"))
    epochs, steps = len(seconds.get("epochs") or ()), max(1, int(result.get("steps") or 0))
    at_once, found = result.get("steps") == 0, list(events)
    each = [seconds for _, seconds in step_seconds(found)]
    gpus = [gpu for event in found if event.get("event") == SAMPLE for gpu in event.get("gpus") or ()]
    used = [float(gpu["utilisation"]) for gpu in gpus if gpu.get("utilisation") is not None]
    return {
        "total_seconds": float(seconds["total"]),
        "total_formatted": format_seconds(float(seconds["total"])),
        "per_epoch_avg": None if at_once else (training + float(seconds.get("epoch", 0.0))) / max(1, epochs),
        "per_step_avg": None if at_once else training / steps,
        "validation_total": None if at_once else float(seconds.get("validation", 0.0)),
        "step_cv": stdev(each) / fmean(each) if len(each) > 1 and fmean(each) > 0 else None,
        "gpu_utilization": fmean(used) / 100 if used else None,
    }


def step_seconds(events: Iterable[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Optimizer steps after the warm-up, each with its seconds."""
    steps = [(int(e["step"]), e.get("seconds")) for e in events if e.get("event") == "step"]
    return [(step, float(seconds)) for step, seconds in steps if seconds is not None and step > WARM_UP]


def format_seconds(seconds: float) -> str:
    """Hours, minutes and seconds: 1h 02m 05s, 3m 12s, 4.2s, <0.1s."""
    if seconds < 59.95:
        return f"{seconds:.1f}s" if seconds >= 0.05 else "<0.1s"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}h {minutes:02d}m {whole % 60:02d}s" if hours else f"{minutes}m {whole % 60:02d}s"


def write_session(home: Path, record: Mapping[str, Any]) -> Path:
    """Keep a session next to those that were before it."""
    name = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(record["time"]))
    names = (f"{name}-{number}.json" if number > 1 else f"{name}.json" for number in count(1))
    path = next(home / FOLDER / name for name in names if not (home / FOLDER / name).exists())
    write_record(path, record)
    return path


def read_sessions(home: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Every session of a study, the oldest first, and the files that are not what was written."""
    found, damaged = [], []
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            found.append(read_sealed(path))
        except (OSError, ValueError) as error:
            damaged.append(f"{FOLDER}/{path.name}: {explain(error)}")
    return sorted(found, key=lambda record: float(record["time"])), damaged
