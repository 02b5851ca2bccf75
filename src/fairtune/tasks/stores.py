"""Where published data is: a local mirror first, else the hub, which give the same rows; or an installed package."""

from __future__ import annotations

import gzip
import importlib.util
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.cache import cached_json, key_of
from fairtune.core.errors import DataError, one_of
from fairtune.core.files import stat_of
from fairtune.tasks.definitions import DataSet, Definition
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.reader import checked_texts, shard_batches
from fairtune.tasks.reading.rows import NUMBER, Rows, read_rows

MIRROR = "FAIRTUNE_MIRROR"
COUNTED_BYTES = 64 << 20
"""A packed file of more is not read only to be counted."""
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
HUB_ROWS = 500
"""Texts that are taken from the hub at a time."""


class Store(Protocol):
    """A place that has the splits of a task; a `DataError` says what is not there, or not as the task needs it."""

    def identity(self, data: DataSet, split: str, column: str = "") -> str:
        """What this place holds of a split, or of one column of it, without reading more than it must."""

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str, aside: Path) -> Rows:
        """One split; `aside` is a folder for files that need not last."""

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:
        """One column of a split from the beginning, some rows at a time, no more than are asked for."""

    def __str__(self) -> str: ...


def find_store(task: Definition) -> Store:
    """The package of the task, or the mirror if it has the task, else the hub."""
    folder = mirror_folder()
    if task.data.package:
        return Package(task)
    if folder is None:
        return Hub(task, f"{MIRROR} is not set")
    if not folder.is_dir():
        raise DataError(
            f"{MIRROR}: {folder} is not a folder; name one with {one_of(wanted_files(task))}, or unset it to use the hub."
        )
    if (folder / task.data.folder).is_dir():
        return Mirror(task, folder)
    return Hub(task, f"{MIRROR} is {folder}, which has no folder {task.data.folder}")


def mirror_folder() -> Path | None:
    """The folder that the environment names, be it there or not."""
    named = os.environ.get(MIRROR, "").strip()
    return Path(named).expanduser() if named else None


def mirror_file(data: DataSet, split: str) -> str:
    """Where a mirror keeps a split."""
    return f"{data.folder}/{split}.jsonl.gz"


def wanted_files(task: Definition) -> list[str]:
    """The files that a mirror needs for a task."""
    return [mirror_file(data, split) for data, split in task.places().values()]


def forbidding() -> list[str]:
    """The variables that forbid the network."""
    return [name for name in OFFLINE if os.environ.get(name, "0").upper() not in ("", "0", "FALSE", "NO", "OFF")]


def file_texts(path: Path, column: str, encoding: str | None = None) -> Iterator[list[str]]:
    """A column of a file or of a folder of shards; in plain text, one document per paragraph. Nothing is an empty text."""
    for some in shard_batches(path, [column], "paragraph", encoding):
        yield _texts(path, column, some.values(column), some.numbers)


def _texts(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str]:
    return [text or "" for text in checked_texts(where, column, values, numbers)]


class Mirror:
    """A folder with `<task>/<split>.jsonl.gz`, columns named as on the hub."""

    def __init__(self, task: Definition, folder: Path) -> None:
        self._task, self._folder = task, folder

    def __str__(self) -> str:
        return "local mirror"

    def identity(self, data: DataSet, split: str, column: str = "") -> str:
        found = file_identity(self._file(data, split))
        return key_of([found, column]) if column else found

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str, aside: Path) -> Rows:
        file = self._file(data, split)
        rows = read_rows(file, texts, label, aside / f"{data.folder.replace('/', '-')}-{split}.rows", hashed=texts)
        cached_json("rows", _key(file), lambda: len(rows))
        return rows

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:
        return file_texts(self._file(data, split), column)

    def _file(self, data: DataSet, split: str) -> Path:
        file, task = self._folder / mirror_file(data, split), self._task
        if not file.is_file():
            there = sorted(path.name for path in file.parent.glob("*.jsonl.gz"))
            other = f"; or take the task '{task.instead}', which does not need it" if task.instead else ""
            raise DataError(
                f"task '{task.name}': the mirror lacks {mirror_file(data, split)} ({file}); in that folder: "
                f"{one_of(there) or 'no .jsonl.gz files'}. Add it, or unset {MIRROR} to read the task from the hub{other}."
            )
        return file


class Hub:
    """The Hugging Face hub, or its cache on this machine, at the commit that the task pins."""

    def __init__(self, task: Definition, no_mirror: str) -> None:
        self._task, self._no_mirror = task, no_mirror
        self._loaded: dict[DataSet, Any] = {}

    def __str__(self) -> str:
        return f"hub {self._task.data}"

    def identity(self, data: DataSet, split: str, column: str = "") -> str:
        return f"hub {data.repository} {data.config} {data.revision} {split} {column}".rstrip()

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str, aside: Path) -> Rows:  # noqa: ARG002 - `datasets` has files of its own
        import pyarrow as pa
        import pyarrow.compute as pc

        where, splits = f"hub data set {data}, split {split}", self._load(data)
        self._require(split, splits, where)
        check_columns(where, splits[split].column_names, [*texts, label])
        found = splits[split].data.table
        columns = {name: found.column(name) for name in texts}
        columns[label] = pc.cast(found.column(label), pa.large_string())
        return Rows(where, pa.table({**columns, NUMBER: pa.array(range(1, found.num_rows + 1), pa.int64())}))

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:
        where, number = f"hub data set {data}, split {split}", 1
        with closing(self._stream(data, split, where)) as batches:
            for batch in batches:
                check_columns(where, list(batch), [column])
                yield _texts(where, column, batch[column], range(number, number + len(batch[column])))
                number += len(batch[column])

    def _stream(self, data: DataSet, split: str, where: str) -> Generator[dict[str, list[Any]]]:
        import datasets

        datasets.disable_progress_bars()
        try:
            builder = datasets.load_dataset_builder(data.repository, data.config, revision=data.revision)
            self._require_commit({Path(builder.cache_dir).name}, data)
            splits = builder.as_streaming_dataset()
            self._require(split, splits, where)
            yield from splits[split].iter(batch_size=HUB_ROWS)
        except DataError:
            raise
        except Exception as error:  # network, offline mode, no such data set or commit: each its own type
            raise self._unavailable(data, error) from None

    def _load(self, data: DataSet) -> Any:
        if data not in self._loaded:
            import datasets

            try:
                found = datasets.load_dataset(
                    data.repository, data.config, revision=data.revision, keep_in_memory=False
                )
            except Exception as error:  # network, offline mode, no such data set, a full disk: each its own type
                raise self._unavailable(data, error) from None
            files = [Path(file["filename"]) for split in found.values() for file in split.cache_files]
            self._require_commit({file.parent.name for file in files}, data)
            self._loaded[data] = found
        return self._loaded[data]

    def _require(self, split: str, splits: Any, where: str) -> None:
        if split not in splits:
            raise DataError(f"task '{self._task.name}': {where}: no such split; splits: {one_of(splits)}.")

    def _require_commit(self, commits: set[str], data: DataSet) -> None:
        """Without network `datasets` takes whatever commit it fetched last."""
        if commits != {data.revision}:
            raise self._unavailable(data, f"in its place is {one_of(sorted(commits))}")

    def _unavailable(self, data: DataSet, error: Exception | str) -> DataError:
        """Neither the mirror nor the hub gives the data: why, and the ways out."""
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        offline = forbidding()
        network = f"unset {one_of(offline)}, which forbids the network" if offline else "connect to the network"
        own = "`train`, `text` and `label`" if self._task.labels else "`kind: language_model` and `train`"
        return DataError(
            f"task '{self._task.name}': no data. {self._no_mirror}, and the hub did not give {data} ({reason}). Either set "
            f"{MIRROR} to a folder with {one_of(wanted_files(self._task))}; or {network}, so that the hub can be read; or give "
            f"your own files: `task:` with {own}."
        )


class Package:
    """A file of an installed package, found without importing the package."""

    def __init__(self, task: Definition) -> None:
        self._data = task.data

    def __str__(self) -> str:
        return str(self._data)

    def identity(self, data: DataSet, split: str, column: str = "") -> str:  # noqa: ARG002 - one file, one split
        return key_of([file_identity(package_file(data)), data.only, column])

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str, aside: Path) -> Rows:
        rows = read_rows(package_file(data), [*texts, data.only[0]], label, aside / f"{split}.rows")
        return rows.where_equal(*data.only)

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:  # noqa: ARG002 - one file, one split
        file, (only, value) = package_file(data), data.only
        for some in shard_batches(file, [column, only]):
            texts = _texts(file, column, some.values(column), some.numbers)
            yield [text for text, found in zip(texts, some.values(only), strict=True) if found == value]


def package_file(data: DataSet) -> Path:
    """The file of packaged data.

    Raises:
        DataError: its package is not installed, or not whole.
    """
    spec, task = importlib.util.find_spec(data.package), f"task '{data.package.replace('_', '-')}'"
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"{task}: its package is not installed; run `pip install 'fairtune[demo]'`.")
    file = Path(next(iter(spec.submodule_search_locations))) / data.file
    if not file.is_file():
        raise DataError(f"{task}: {data.file} is missing from its package; reinstall `fairtune[demo]`.")
    return file


def counted_rows(file: Path) -> int | None:
    """The rows of a mirror's file: as they were counted before, else counted now, unless that would take long."""

    def count() -> int:
        if file.stat().st_size > COUNTED_BYTES:
            raise OSError
        with gzip.open(file, "rb") as lines:
            return sum(1 for line in lines if line.strip())

    try:
        return int(cached_json("rows", _key(file), count))
    except (OSError, EOFError, zlib.error):
        return None  # too large, or damaged, which is said when it is read


def _key(file: Path) -> str:
    return key_of([str(file.resolve()), stat_of(file)])
