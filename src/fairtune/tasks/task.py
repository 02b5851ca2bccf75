"""What a task is once its data is read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.int64]
Texts = tuple[str, ...]
"""One text, or the two of a pair."""


@dataclass(frozen=True)
class Split:
    """Examples in a fixed order."""

    ids: tuple[str, ...]
    texts: tuple[Texts, ...]
    labels: Labels

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: npt.NDArray[np.int64]) -> Split:
        return Split(tuple(self.ids[i] for i in rows), tuple(self.texts[i] for i in rows), self.labels[rows])


@dataclass(frozen=True)
class TaskFacts:
    """What a plan records of a task."""

    name: str
    kind: str
    metric: str
    labels: tuple[str, ...]
    rows: dict[str, int]
    source: str
    fingerprint: str


@dataclass(frozen=True, eq=False)
class Task:
    """A task with its data: `train` trains, `validation` selects, `test` is reported."""

    name: str
    metric: str
    labels: tuple[str, ...]
    splits: Mapping[str, Split]
    source: str
    kind: str = "classify"

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of every text and label of every split, whatever file format they came from."""
        digest = hashlib.sha256("\0".join(self.labels).encode())
        for name in ("train", "validation", "test"):
            split = self.splits[name]
            digest.update(f"\1{name}\1{len(split)}".encode())
            for texts in split.texts:
                digest.update("\2".join(texts).encode("utf-8", "surrogatepass") + b"\0")
            digest.update(split.labels.astype("<i8").tobytes())
        return digest.hexdigest()

    def facts(self) -> TaskFacts:
        rows = {name: len(split) for name, split in self.splits.items()}
        return TaskFacts(self.name, self.kind, self.metric, self.labels, rows, self.source, self.fingerprint)
