"""From a definition to a task with its data: one split selects, another is reported."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError
from fairtune.tasks.definitions import Definition
from fairtune.tasks.reading.rows import Rows
from fairtune.tasks.splits import by_hash, fixed_halves, make_splits
from fairtune.tasks.stores import Store, find_store
from fairtune.tasks.task import Task, is_prepared, prepared

UNLABELLED = "-1"
"""What the hub puts where the labels of a test split are kept secret."""


def load_published(task: Definition) -> Task:
    """A published task from its package, the mirror or the hub, checked."""
    store = find_store(task)
    return prepared(_parts(task, store), lambda aside: _read(task, store, aside))


def is_kept(task: Definition) -> bool:
    """Whether what was read of a published task is in the cache, so that neither mirror nor hub is asked.

    Raises:
        DataError: the mirror lacks a file of it.
    """
    return is_prepared(_parts(task, find_store(task)))


def _parts(task: Definition, store: Store) -> dict[str, Any]:
    held = {role: store.identity(data, split) for role, (data, split) in task.places().items()}
    return {"store": str(store), "task": asdict(task), "held": held}


def _read(task: Definition, store: Store, aside: Path) -> Task:
    parts = {role: store.read(data, split, aside) for role, (data, split) in task.places().items()}
    notes = _about_rows(task, parts)
    halved = _unlabelled(task, parts) or task.test is None
    if halved:
        parts.pop("test", None)
    parts |= by_hash(parts["train"], task.text, task.shares)
    _, splits = make_splits(parts, task.text, task.label, [str(number) for number in range(len(task.labels))], aside)
    if halved:
        splits["validation"], splits["test"] = fixed_halves(splits["validation"])
    reported = f"halves of the {task.validation} split" if halved else f"{task.test} split"
    source = "; ".join([str(store), reported, *notes])
    if task.data.package:
        source = f"{store} (Rotten Tomatoes sentences)"
    return Task(task.name, task.metric, task.labels, splits, source)


def _unlabelled(task: Definition, parts: dict[str, Rows]) -> bool:
    """Whether the labels of the test split are kept secret; where any others are, the data cannot be used."""
    for role, rows in parts.items():
        without = rows.counts(task.label)[UNLABELLED]
        if role == "test" and without == len(rows):
            return True
        if without:
            what = "a test split has all its labels or none" if role == "test" else f"the {role} split must have them"
            raise DataError(
                f"task '{task.name}': {rows.where}: {without:,} of {len(rows):,} rows have the label -1, which means that "
                f"it is not known; {what}. Fetch the file again, or remove these rows."
            )
    return False


def _about_rows(task: Definition, parts: dict[str, Rows]) -> list[str]:
    """What a reader of the results must know: that a split is another task's, not whole, or held out."""
    notes = [f"trained on {task.trained_on.folder}"] if task.trained_on else []
    for role, (data, split) in task.places().items():
        rows, published = len(parts[role]), data.rows.get(split, 0)
        if rows < published:
            notes.append(f"{rows:,} of the {published:,} published {'training' if role == 'train' else role} rows")
    return notes + [f"{role} is {share:.0%} of the training split" for role, share in task.shares.items()]
