"""From a definition to a task with its data: one split selects, another is reported."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fairtune.tasks.definitions import DataSet, Definition
from fairtune.tasks.preparing import prepared
from fairtune.tasks.rows import Rows
from fairtune.tasks.splits import Column, by_hash, fixed_halves, make_split, read_labels
from fairtune.tasks.stores import Store, find_store
from fairtune.tasks.task import Task

HELD_OUT = 0.05
"""Share of the training split that selects, where a data set has no validation split."""
UNLABELLED = "-1"
"""What the hub puts where the labels of a test split are kept secret."""


def load_published(task: Definition) -> Task:
    """A published task from the mirror or the hub, checked."""
    store = find_store(task)
    held = {role: store.identity(data, split) for role, (data, split) in _places(task).items()}
    return prepared([str(store), asdict(task), held], lambda aside: _read(task, store, aside))


def _read(task: Definition, store: Store, aside: Path) -> Task:
    parts = {
        role: store.read(data, split, task.text, task.label, aside) for role, (data, split) in _places(task).items()
    }
    notes = [str(store), *_about_training(task, len(parts["train"]))]
    if task.validation is None:
        parts |= by_hash(parts["train"], task.text, {"validation": HELD_OUT})
        notes.append(f"validation is {HELD_OUT:.0%} of the training split")
    if "test" in parts and _is_secret(parts["test"], task.label):
        del parts["test"]
    numbers = {str(number): number for number in range(len(task.labels))}
    read_labels(parts, task.label, list(numbers))
    column = Column(task.text, task.label, numbers, task.labels)
    splits = {name: make_split(rows, column, name, aside, blank=True) for name, rows in parts.items()}
    if "test" in splits:
        notes.insert(1, f"{task.test} split")
    else:
        notes.insert(1, f"halves of the {task.validation or 'validation'} split")
        splits["validation"], splits["test"] = fixed_halves(splits["validation"])
    return Task(task.name, task.metric, task.labels, splits, "; ".join(notes))


def _places(task: Definition) -> dict[str, tuple[DataSet, str]]:
    """Which split of which data set plays which role."""
    places = {"train": (task.trained_on or task.data, "train")}
    for role, split in (("validation", task.validation), ("test", task.test)):
        if split is not None:
            places[role] = (task.data, split)
    return places


def _is_secret(rows: Rows, label: str) -> bool:
    return any((UNLABELLED,) in batch for batch in rows.batches([label]))


def _about_training(task: Definition, rows: int) -> list[str]:
    """What a reader of the results must know: that the training split is another task's, or not all of it."""
    data = task.trained_on or task.data
    notes = [f"trained on {data.folder}"] if task.trained_on else []
    published = data.rows["train"]
    if rows < published:
        notes.append(f"{rows:,} of the {published:,} published training rows")
    return notes
