"""From a definition to a task with its data: one split selects, another is reported."""

from __future__ import annotations

from fairtune.tasks.definitions import Definition
from fairtune.tasks.sources import Rows
from fairtune.tasks.splits import Column, by_hash, fixed_halves, make_split, read_labels
from fairtune.tasks.stores import Store, find_store
from fairtune.tasks.task import Task

HELD_OUT = 0.05
"""Share of the training split that selects, where a data set has no validation split."""
UNLABELLED = -1
"""What the hub puts where the labels of a test split are kept secret."""


def load_published(task: Definition) -> Task:
    """Read a published task from the mirror or the hub, and check it."""
    store = find_store(task)
    parts = _read(store, task)
    notes = [str(store), *_about_training(task, len(parts["train"]))]
    if task.validation is None:
        parts |= by_hash(parts["train"], task.text, {"validation": HELD_OUT})
        notes.append(f"validation is {HELD_OUT:.0%} of the training split")
    if "test" in parts and UNLABELLED in parts["test"].columns[task.label]:
        del parts["test"]
    numbers = {str(number): number for number in range(len(task.labels))}
    read_labels(parts, task.label, list(numbers))
    column = Column(task.text, task.label, numbers, task.labels)
    splits = {name: make_split(rows, column, name, blank=True) for name, rows in parts.items()}
    if "test" in splits:
        notes.insert(1, f"{task.test} split")
    else:
        notes.insert(1, f"halves of the {task.validation or 'validation'} split")
        splits["validation"], splits["test"] = fixed_halves(splits["validation"])
    return Task(task.name, task.metric, task.labels, splits, "; ".join(notes))


def _read(store: Store, task: Definition) -> dict[str, Rows]:
    columns = [*task.text, task.label]
    parts = {"train": store.read(task.trained_on or task.data, "train", columns)}
    for role, split in (("validation", task.validation), ("test", task.test)):
        if split is not None:
            parts[role] = store.read(task.data, split, columns)
    return parts


def _about_training(task: Definition, rows: int) -> list[str]:
    """What a reader of the results must know: that the training split is another task's, or not all of it."""
    data = task.trained_on or task.data
    notes = [f"trained on {data.folder}"] if task.trained_on else []
    if rows < data.train_rows:
        notes.append(f"{rows:,} of the {data.train_rows:,} published training rows")
    return notes
