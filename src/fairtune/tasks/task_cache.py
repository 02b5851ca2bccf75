"""A task's data, read and checked once, then kept in the cache: a second start maps it and reads nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtune.core.cache import cache_folder, cached, key_of
from fairtune.core.files import write_json
from fairtune.tasks.reading.rows import BATCH, open_table, write_batches
from fairtune.tasks.task import SPLITS, Split, Task

AREA = "tasks"
VERSION = 4
"""Raised whenever the same files would give other splits."""
FACTS = ("name", "metric", "labels", "source", "notes")
Make = Callable[[Path], Task]
"""Reads a task; the folder it is given is for files that need not last."""


def prepared(parts: Any, make: Make) -> Task:
    """The task that `make` reads, or what was kept of it.

    Args:
        parts: everything that decides the outcome: what the files hold, which columns count, how they are split.
    """
    return cached(AREA, key_of([VERSION, parts]), lambda folder: _build(folder, make), _open)


def is_prepared(parts: Any) -> bool:
    """Whether a task that was read from these parts is in the cache."""
    return (cache_folder() / AREA / key_of([VERSION, parts])).is_dir()


def _build(folder: Path, make: Make) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        task = make(Path(aside))
        for name in SPLITS:
            write_batches(folder / f"{name}.arrow", task.splits[name].table.to_batches(max_chunksize=BATCH))
        facts = {field: getattr(task, field) for field in FACTS}
        splits = {name: task.splits[name].identity for name in SPLITS}
    write_json(folder / "task.json", {**facts, "known": task.fingerprint, "splits": splits})


def _open(folder: Path) -> Task:
    facts = json.loads((folder / "task.json").read_bytes())
    splits = {name: Split(open_table(folder / f"{name}.arrow"), known) for name, known in facts["splits"].items()}
    return Task(**{**facts, "labels": tuple(facts["labels"]), "notes": tuple(facts["notes"]), "splits": splits})
