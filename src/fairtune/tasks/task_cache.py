"""A task's data, read and checked once, then kept in the cache: a second start maps it and reads nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fairtune.core.cache import cache_folder, cached, key_of
from fairtune.core.files import write_json
from fairtune.tasks.reading.rows import BATCH, open_table, write_batches
from fairtune.tasks.task import SPLITS, Split, Task

AREA = "tasks"
VERSION = 3
"""Raised whenever the same files would give other splits."""
Make = Callable[[Path], Task]
"""Reads a task; the folder it is given is for files that need not last."""


def prepared(parts: Any, make: Make) -> Task:
    """The task that `make` reads, or what was kept of it.

    Args:
        parts: everything that decides the outcome: what the files hold, which columns count, how they are split.
    """
    return cached(AREA, _key(parts), lambda folder: _build(folder, make), _open)


def is_prepared(parts: Any) -> bool:
    """Whether a task that was read from these parts is in the cache."""
    return (cache_folder() / AREA / _key(parts)).is_dir()


def _key(parts: Any) -> str:
    return key_of([VERSION, parts])


def _build(folder: Path, make: Make) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        facts = _keep(folder, make(Path(aside)))
    write_json(folder / "task.json", facts)


def _keep(folder: Path, task: Task) -> dict[str, Any]:
    """Write the splits; returns what else there is to know of the task."""
    with ThreadPoolExecutor(1) as thread:  # sha256 lets other threads go on meanwhile
        fingerprint = thread.submit(lambda: task.fingerprint)
        for name in SPLITS:
            write_batches(folder / f"{name}.arrow", task.splits[name].table.to_batches(max_chunksize=BATCH))
        identities = {name: task.splits[name].identity for name in SPLITS}
    return {
        "name": task.name,
        "metric": task.metric,
        "labels": list(task.labels),
        "source": task.source,
        "fingerprint": fingerprint.result(),
        "splits": identities,
        **({"notes": list(task.notes)} if task.notes else {}),
    }


def _open(folder: Path) -> Task:
    facts = json.loads((folder / "task.json").read_bytes())
    splits = {name: Split(open_table(folder / f"{name}.arrow"), known) for name, known in facts["splits"].items()}
    return Task(
        facts["name"],
        facts["metric"],
        tuple(facts["labels"]),
        splits,
        facts["source"],
        known=facts["fingerprint"],
        notes=tuple(facts.get("notes", ())),
    )
