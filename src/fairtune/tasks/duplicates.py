"""Examples that occur more than once, in a split or in two, and a task without them.

Two texts are the same if their normal form is: case, punctuation, symbols and spacing do not count. A pair is the same if
both its texts are. `dedupe: true` takes out of the training split, for the first of these reasons that holds,

1. what is also in the test split,
2. what is also in the validation split,
3. every example of a text that has several labels in the training split, since nobody can tell which is right,
4. what occurred before in the training split,

and out of the validation split what is also in the test split. The test split is what is reported: it stays as it was published.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import DataError, one_of
from fairtune.ledger.data_card import Removal
from fairtune.tasks.task import Labels, Task, prepared
from fairtune.tasks.text_hashes import Hashes

Mask = npt.NDArray[np.bool_]


def repeated(hashes: Hashes) -> Mask:
    """The examples that occurred before in the split."""
    first = np.unique(hashes, return_index=True)[1]
    again = np.ones(len(hashes), dtype=np.bool_)
    again[first] = False
    return again


def contradictory(hashes: Hashes, labels: Labels) -> Mask:
    """The examples whose text has another label elsewhere in the split."""
    texts, group = np.unique(hashes, return_inverse=True)
    lowest, highest = np.full(len(texts), np.iinfo(np.int64).max), np.full(len(texts), -1)
    np.minimum.at(lowest, group, labels)
    np.maximum.at(highest, group, labels)
    return np.asarray((lowest != highest)[group], dtype=np.bool_)


def shared(hashes: Hashes, others: Hashes) -> Mask:
    """The examples that are among the others too."""
    if len(others) > len(hashes):  # NumPy takes several times as long to look for few among many
        others = others[np.isin(others, hashes)]
    return np.isin(hashes, others)


def find_duplicates(task: Task) -> tuple[dict[str, Mask], Removal]:
    """The examples that `dedupe: true` takes out of each split, and their number by reason."""
    train, validation, test = (task.splits[name] for name in ("train", "validation", "test"))
    reasons = {
        "in_test": shared(train.normal, test.normal),
        "in_validation": shared(train.normal, validation.normal),
        "contradictory": contradictory(train.normal, train.labels),
        "repeated": repeated(train.normal),
    }
    gone, counts = np.zeros(len(train), dtype=np.bool_), {}
    for reason, found in reasons.items():
        counts[reason] = int((found & ~gone).sum())
        gone |= found
    reported = shared(validation.normal, test.normal)
    return {"train": gone, "validation": reported}, Removal(**counts, validation_in_test=int(reported.sum()))


def without_duplicates(task: Task) -> Task:
    """The task without examples that occur more than once.

    Raises:
        DataError: nothing is left to train on or to select by, or a class is gone.
    """
    drop, removal = find_duplicates(task)
    _require_rest(task, drop, removal)
    source = f"{task.source}; deduplicated: {removal}"

    def make(_: Path) -> Task:
        kept = {name: task.splits[name].take(np.flatnonzero(~mask)) for name, mask in drop.items()}
        return replace(task, splits={**task.splits, **kept}, source=source, known=None)

    parts = ["dedupe", task.name, task.metric, list(task.labels), task.facts().hashes, source, task.kinds]
    return prepared(parts, make)


def _require_rest(task: Task, drop: dict[str, Mask], removal: Removal) -> None:
    train = task.splits["train"]
    lost = set(range(len(task.labels))) - set(train.labels[~drop["train"]].tolist())
    if lost or drop["validation"].all():
        what = "nothing to select by"
        if lost:
            what = f"no training example of class {one_of(task.labels[number] for number in sorted(lost))}"
        raise DataError(
            f"task '{task.name}': dedupe: true leaves {what}. Of {len(train):,} training examples it takes out {removal.train:,} "
            f"({removal.reasons()}), and of the validation split what is also in the test split, {removal.validation_in_test:,}. "
            "Give other data, or set dedupe: false."
        )
