"""From a definition to a task with its data: one split selects, another is reported."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fairtune.core.errors import DataError
from fairtune.tasks.definitions import MOVIE_REVIEWS, Definition
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.rows import Rows, read_rows
from fairtune.tasks.splits import (
    ExampleColumns,
    by_hash,
    fixed_halves,
    make_split,
    read_labels,
)
from fairtune.tasks.stores import Store, find_store, package_file
from fairtune.tasks.task import Task
from fairtune.tasks.task_cache import is_prepared, prepared

HELD_OUT = 0.05
"""Share of the training split that selects, where a data set has no validation split."""
UNLABELLED = "-1"
"""What the hub puts where the labels of a test split are kept secret."""
REMARKS = ("licence", "about", "hidden", "instead")
"""Fields that say something of the data and change nothing in it."""


def load_published(task: Definition) -> Task:
    """A published task from the mirror or the hub, checked."""
    store = find_store(task)
    return prepared(_parts(task, store), lambda aside: _read(task, store, aside))


def is_kept(task: Definition) -> bool:
    """Whether what was read of a published task is in the cache, so that neither mirror nor hub is asked.

    Raises:
        DataError: the mirror lacks a file of it.
    """
    return is_prepared(_parts(task, find_store(task)))


def _parts(task: Definition, store: Store) -> dict[str, object]:
    held = {role: store.identity(data, split) for role, (data, split) in task.places().items()}
    return {"store": str(store), "task": _without_remarks(asdict(task)), "held": held}


def _without_remarks(facts: dict[str, object]) -> dict[str, object]:
    return {
        name: _without_remarks(value) if isinstance(value, dict) else value
        for name, value in facts.items()
        if name not in REMARKS
    }


def _read(task: Definition, store: Store, aside: Path) -> Task:
    parts = {
        role: store.read(data, split, task.text, task.label, aside) for role, (data, split) in task.places().items()
    }
    notes = [str(store), *_about_rows(task, parts)]
    if task.validation is None:
        parts |= by_hash(parts["train"], task.text, {"validation": HELD_OUT})
        notes.append(f"validation is {HELD_OUT:.0%} of the training split")
    if _unlabelled(task, parts):
        del parts["test"]
    numbers = {str(number): number for number in range(len(task.labels))}
    _, spellings = read_labels(parts, task.label, list(numbers))
    column = ExampleColumns(task.text, task.label, numbers, task.labels).spelled(spellings)
    splits = {name: make_split(rows, column, name, aside, blank=True) for name, rows in parts.items()}
    if "test" in splits:
        notes.insert(1, f"{task.test} split")
    else:
        notes.insert(1, f"halves of the {task.validation or 'validation'} split")
        splits["validation"], splits["test"] = fixed_halves(splits["validation"])
    return Task(task.name, task.metric, task.labels, splits, "; ".join(notes))


def _unlabelled(task: Definition, parts: dict[str, Rows]) -> bool:
    """Whether the labels of the test split are kept secret; where any others are, the data cannot be used."""
    for role, rows in parts.items():
        without = sum(batch.count((UNLABELLED,)) for batch in rows.batches([task.label]))
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
    """What a reader of the results must know: that the training split is another task's, or that a split is not whole."""
    notes = [f"trained on {task.trained_on.folder}"] if task.trained_on else []
    for role, (data, split) in task.places().items():
        rows, published = len(parts[role]), data.rows.get(split, 0)
        if rows < published:
            notes.append(f"{rows:,} of the {published:,} published {'training' if role == 'train' else role} rows")
    return notes


MOVIE_COLUMN = ExampleColumns(("text",), "label", {"0": 0, "1": 1}, ("negative", "positive"))
MOVIE_SHARES = {"validation": 0.05, "test": 0.15}


def movie_reviews() -> Task:
    """Rotten Tomatoes sentences of the installed package, split 80/5/15 by a hash of the text."""
    data = MOVIE_REVIEWS
    file = package_file(data.package, data.inside, data.folder)

    def make(aside: Path) -> Task:
        rows = read_rows(file, ["text", data.only[0]], "label", aside / "rows").where_equal(*data.only)
        parts = by_hash(rows, MOVIE_COLUMN.text, MOVIE_SHARES)
        splits = {name: make_split(part, MOVIE_COLUMN, name, aside) for name, part in parts.items()}
        return Task(data.folder, "accuracy", MOVIE_COLUMN.names, splits, f"{data} (Rotten Tomatoes sentences)")

    return prepared([data.folder, file_identity(file)], make)
