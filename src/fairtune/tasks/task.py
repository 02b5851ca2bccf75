"""What a task is once its data is read and checked, which is done once: the cache keeps it.

Texts stay on disk: Arrow maps them into memory where they are used.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cache_folder, cached, key_of
from fairtune.core.files import write_json
from fairtune.settings.file_task import SPLITS as SPLITS
from fairtune.tasks.reading.rows import BATCH, open_table, write_batches
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, Hashes, exact_and_normal

Labels = npt.NDArray[np.int64]
Texts = tuple[str, ...]
"""One text, or the two of a pair."""
TEXT_COLUMNS = ("text", "pair")
AREA, VERSION = "tasks", 5
"""In the cache; the version is raised whenever the same files would give other splits."""
FACTS = ("name", "metric", "labels", "source", "notes")


class TextView(Sequence[Texts]):
    """The texts of a split, made into Python's own only where they are looked at."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, place: int) -> Texts: ...
    @overload
    def __getitem__(self, place: slice) -> list[Texts]: ...
    def __getitem__(self, place: int | slice) -> Texts | list[Texts]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return list(self._tuples(self._table.slice(start, max(0, stop - start))))[::step]
        return next(self._tuples(self._table.slice(range(len(self))[place], 1)))

    def __iter__(self) -> Iterator[Texts]:
        for batch in self._table.to_batches(max_chunksize=BATCH):
            yield from self._tuples(batch)

    @staticmethod
    def _tuples(table: Any) -> Iterator[Texts]:
        return zip(*(column.to_pylist() for column in table.columns), strict=True)


@dataclass(frozen=True, eq=False)
class Split:
    """Examples in a fixed order.

    Args:
        table: columns `id`, `text`, for pairs also `pair`, and `label`; perhaps `exact` and `normal`, hashes of the texts, and
            `kind`, what kind of example it is, by which mistakes are told apart and nothing is trained.
        known: the identity, where it was computed before.
    """

    table: Any
    known: str | None = None

    @classmethod
    def of(cls, ids: Sequence[str], texts: Sequence[Texts], labels: Labels) -> Split:
        """A split from Python's own values."""
        import pyarrow as pa

        columns = {
            name: pa.array(part, pa.large_string())
            for name, part in zip(TEXT_COLUMNS, zip(*texts, strict=True), strict=False)
        }
        return cls(pa.table({"id": pa.array(ids, pa.string()), **columns, "label": pa.array(labels, pa.int64())}))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.table.column("id").to_pylist())

    @cached_property
    def texts(self) -> TextView:
        return TextView(self.text_table)

    @property
    def text_table(self) -> Any:
        """One column of texts, or the two of pairs."""
        return self.table.select([name for name in TEXT_COLUMNS if name in self.table.column_names])

    @cached_property
    def labels(self) -> Labels:
        found: Labels = _numbers(self.table.column("label")).copy()
        return found

    @cached_property
    def exact(self) -> Hashes:
        """A hash of each example's texts."""
        return self._hashes[0]

    @cached_property
    def normal(self) -> Hashes:
        """A hash of each example's texts without case, punctuation and spacing."""
        return self._hashes[1]

    @cached_property
    def _hashes(self) -> tuple[Hashes, Hashes]:
        if "exact" in self.table.column_names:
            return _numbers(self.table.column("exact")), _numbers(self.table.column("normal"))
        return exact_and_normal(self.text_table.columns)

    @property
    def kinds(self) -> tuple[str | None, ...] | None:
        """Of what kind each example is, None for one of no kind; None altogether where nothing says it."""
        return tuple(self.table.column("kind").to_pylist()) if "kind" in self.table.column_names else None

    def take(self, rows: npt.NDArray[np.int64]) -> Split:
        return Split(self.table.take(np.asarray(rows, dtype=np.int64)))

    @cached_property
    def identity(self) -> str:
        """sha256 of ids, texts and labels: what is made of this split is found again by it."""
        if self.known:
            return self.known
        digest = hashlib.sha256()
        _add_columns(self.table.select(["id"]), digest)
        self.add_to(digest)
        return digest.hexdigest()

    def add_to(self, digest: Any) -> None:
        """Texts and labels into a hash."""
        _add_columns(self.text_table, digest)
        digest.update(self.labels.astype("<i8").tobytes())


@dataclass(frozen=True)
class TaskFacts:
    """What a plan records of a task.

    Args:
        rows: examples of each split; documents, if the task is text for language models.
        hashes: the identity of each split.
        counts: of such text, by split: documents, tokens, bytes and words.
    """

    name: str
    kind: str
    metric: str
    labels: tuple[str, ...]
    rows: dict[str, int]
    source: str
    fingerprint: str
    hashes: dict[str, str]
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Task:
    """A task with its data: `train` trains, `validation` selects, `test` is reported.

    Args:
        known: the fingerprint, where it was computed before.
        notes: what a reader of its results must know of how it was read.
    """

    name: str
    metric: str
    labels: tuple[str, ...]
    splits: Mapping[str, Split]
    source: str
    known: str | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of every text and label of every split, whatever file format they came from."""
        if self.known:
            return self.known
        digest = hashlib.sha256("\0".join(self.labels).encode())
        for name in SPLITS:
            split = self.splits[name]
            digest.update(f"\1{name}\1{len(split)}".encode())
            split.add_to(digest)
        return digest.hexdigest()

    @property
    def kinds(self) -> str | None:
        """A hash of the kinds of all examples, which are no part of the fingerprint; None if there are none."""
        found = {name: split.kinds for name, split in self.splits.items() if split.kinds is not None}
        return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest() if found else None

    def facts(self) -> TaskFacts:
        rows = {name: len(split) for name, split in self.splits.items()}
        hashes = {name: split.identity for name, split in self.splits.items()}
        return TaskFacts(self.name, "classify", self.metric, self.labels, rows, self.source, self.fingerprint, hashes)


def prepared(parts: Any, make: Callable[[Path], Task]) -> Task:
    """The task that `make` reads, or what was kept of it.

    Args:
        parts: everything that decides the outcome: what the files hold, which columns count, how they are split.
        make: reads it; the folder that it is given is for files that need not last.
    """
    return cached(AREA, key_of([VERSION, parts]), lambda folder: _build(folder, make), _open)


def is_prepared(parts: Any) -> bool:
    """Whether a task that was read from these parts is in the cache."""
    return (cache_folder() / AREA / key_of([VERSION, parts])).is_dir()


def _build(folder: Path, make: Callable[[Path], Task]) -> None:
    def write(name: str) -> None:
        write_batches(folder / f"{name}.arrow", task.splits[name].table.to_batches(max_chunksize=BATCH))

    with tempfile.TemporaryDirectory(dir=folder) as aside, ThreadPoolExecutor() as pool:
        task = make(Path(aside))
        written = pool.map(write, SPLITS)  # while the splits are hashed
        hashed = pool.map(lambda name: task.splits[name].identity, SPLITS)
        facts = {**{field: getattr(task, field) for field in FACTS}, "known": task.fingerprint}
        splits = dict(zip(SPLITS, hashed, strict=True))
        list(written)
    write_json(folder / "task.json", {**facts, "splits": splits})


def _open(folder: Path) -> Task:
    facts = json.loads((folder / "task.json").read_bytes())
    splits = {name: Split(open_table(folder / f"{name}.arrow"), known) for name, known in facts["splits"].items()}
    return Task(**{**facts, "labels": tuple(facts["labels"]), "notes": tuple(facts["notes"]), "splits": splits})


def _add_columns(table: Any, digest: Any) -> None:
    """Texts into a hash, in UTF-8, a null byte after each row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.large_string()
    for batch in table.to_batches(max_chunksize=BATCH):
        columns = [pc.cast(column, text) for column in batch.columns]
        whole = pc.binary_join_element_wise(*columns, pa.scalar(PAIR_SEPARATOR, text))
        ended = pc.binary_join_element_wise(whole, pa.scalar("", text), pa.scalar("\0", text))
        if len(ended):
            digest.update(ended.buffers()[2].slice(0, pc.sum(pc.binary_length(ended)).as_py()))


def _numbers(column: Any) -> Any:
    """The numbers of a column, none of them missing; Arrow's own way to numpy would import pandas first."""
    return np.from_dlpack(column.combine_chunks())
