"""Examples that occur more than once: in a split, with contradictory labels, or in two splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.hashing import Hashes
from fairtune.tasks.preparing import prepared
from fairtune.tasks.rows import BATCH, open_table, write_batches
from fairtune.tasks.task import Labels, Split, Task

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
    return np.isin(hashes, others)


def without_duplicates(task: Task) -> Task:
    """The task without training examples that occur before, contradict each other, or are in another split; and without
    validation examples that are in the test split. What is reported stays as it was published."""
    train, validation, test = (task.splits[name] for name in ("train", "validation", "test"))
    drop = {
        "train": repeated(train.normal)
        | contradictory(train.normal, train.labels)
        | shared(train.normal, np.concatenate([validation.normal, test.normal])),
        "validation": shared(validation.normal, test.normal),
    }
    gone = [f"{int(mask.sum()):,} {name} rows" for name, mask in drop.items() if mask.any()]
    source = f"{task.source}; deduplicated: {' and '.join(gone) or 'nothing'} removed"

    def make(aside: Path) -> Task:
        kept = {name: _filtered(task.splits[name], ~mask, aside / f"{name}.arrow") for name, mask in drop.items()}
        return replace(task, splits={**task.splits, **kept}, source=source, known=None)

    return prepared(["dedupe", task.facts().hashes, source], make)


def _filtered(split: Split, keep: Mask, file: Path) -> Split:
    """The kept examples, written as they come."""
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        first = 0
        for batch in split.table.to_batches(max_chunksize=BATCH):
            yield batch.filter(pa.array(keep[first : first + len(batch)]))
            first += len(batch)

    write_batches(file, batches())
    return Split(open_table(file))
