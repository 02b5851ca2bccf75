"""Where published data is: a local mirror first, else the hub, which give the same rows; or an installed package."""

from __future__ import annotations

import gzip
import importlib.util
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.cache import cached_json, key_of
from fairtune.core.errors import DataError, one_of
from fairtune.core.files import stat_of
from fairtune.tasks.definitions import DataSet, Definition
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.rows import NUMBER, Rows, read_rows

MIRROR = "FAIRTUNE_MIRROR"
COUNTED_BYTES = 64 << 20
"""A packed file of more is not read only to be counted."""
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


class Store(Protocol):
    """A place that has the splits of a task."""

    def identity(self, data: DataSet, split: str) -> str:
        """What this place holds of a split, without reading more than it must."""

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str | None, aside: Path) -> Rows:
        """One split of a data set.

        Args:
            aside: a folder for files that need not last.

        Raises:
            DataError: it is not there, or not as the task needs it; what to do.
        """

    def __str__(self) -> str: ...


def find_store(task: Definition) -> Store:
    """The mirror if it has the task, else the hub."""
    folder = mirror_folder()
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


def mirrored(name: str, folder: Path, data: DataSet, split: str, instead: str | None = None) -> Path:
    """The file of a split in a mirror.

    Args:
        name: the task, for messages.
        instead: a task that does not need the file.

    Raises:
        DataError: it is not there.
    """
    file = folder / mirror_file(data, split)
    if not file.is_file():
        there = sorted(path.name for path in file.parent.glob("*.jsonl.gz"))
        other = f"; or take the task '{instead}', which does not need it" if instead else ""
        raise DataError(
            f"task '{name}': the mirror lacks {mirror_file(data, split)} ({file}); in that folder: "
            f"{one_of(there) or 'no .jsonl.gz files'}. Add it, or unset {MIRROR} to read the task from the hub{other}."
        )
    return file


def unavailable_error(
    name: str, no_mirror: str, data: DataSet, error: Exception | str, files: Sequence[str], own: str
) -> DataError:
    """Neither the mirror nor the hub gives the data: why, and the ways out.

    Args:
        no_mirror: why the mirror does not.
        files: what a mirror would need.
        own: how a user's own files are given.
    """
    reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    offline = forbidding()
    network = f"unset {one_of(offline)}, which forbids the network" if offline else "connect to the network"
    return DataError(
        f"task '{name}': no data. {no_mirror}, and the hub did not give {data} ({reason}). Either set {MIRROR} to a folder with "
        f"{one_of(files)}; or {network}, so that the hub can be read; or give your own files: `task:` with {own}."
    )


class Mirror:
    """A folder with `<task>/<split>.jsonl.gz`, columns named as on the hub."""

    def __init__(self, task: Definition, folder: Path) -> None:
        self._task, self._folder = task, folder

    def __str__(self) -> str:
        return "local mirror"

    def identity(self, data: DataSet, split: str) -> str:
        return file_identity(self._file(data, split))

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str | None, aside: Path) -> Rows:
        file = self._file(data, split)
        rows = read_rows(file, texts, label, aside / f"{data.folder.replace('/', '-')}-{split}.rows", hashed=texts)
        remember_rows(file, len(rows))
        return rows

    def _file(self, data: DataSet, split: str) -> Path:
        return mirrored(self._task.name, self._folder, data, split, self._task.instead)


class Hub:
    """The Hugging Face hub, or its cache on this machine, at the commit that the task pins."""

    def __init__(self, task: Definition, no_mirror: str) -> None:
        self._task, self._no_mirror = task, no_mirror
        self._loaded: dict[DataSet, Any] = {}

    def __str__(self) -> str:
        return f"hub {self._task.data}"

    def identity(self, data: DataSet, split: str) -> str:
        return f"hub {data.repository} {data.config} {data.revision} {split}"

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str | None, aside: Path) -> Rows:  # noqa: ARG002 - `datasets` has files of its own
        import pyarrow as pa
        import pyarrow.compute as pc

        splits = self._load(data)
        where = f"hub data set {data}, split {split}"
        if split not in splits:
            raise DataError(f"task '{self._task.name}': {where}: no such split; splits: {one_of(splits)}.")
        check_columns(where, splits[split].column_names, [*texts, *([label] if label else [])])
        found = splits[split].data.table
        columns = {name: found.column(name) for name in texts}
        if label:
            columns[label] = pc.cast(found.column(label), pa.large_string())
        return Rows(where, pa.table({**columns, NUMBER: pa.array(range(1, found.num_rows + 1), pa.int64())}))

    def _load(self, data: DataSet) -> Any:
        if data not in self._loaded:
            import datasets

            try:
                found = datasets.load_dataset(
                    data.repository, data.config, revision=data.revision, keep_in_memory=False
                )
            except Exception as error:  # network, offline mode, no such data set, a full disk: each its own type
                raise self._unavailable_error(data, error) from None
            commits = {Path(file["filename"]).parent.name for split in found.values() for file in split.cache_files}
            if commits != {data.revision}:  # without network `datasets` takes whatever commit it fetched last
                raise self._unavailable_error(data, f"in its place is {one_of(sorted(commits))}")
            self._loaded[data] = found
        return self._loaded[data]

    def _unavailable_error(self, data: DataSet, error: Exception | str) -> DataError:
        files = wanted_files(self._task)
        return unavailable_error(self._task.name, self._no_mirror, data, error, files, "`train`, `text` and `label`")


def package_file(package: str, inside: str, distribution: str) -> Path:
    """A data file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"task '{distribution}': its package is not installed; run `pip install 'fairtune[demo]'`.")
    file = Path(next(iter(spec.submodule_search_locations))) / inside
    if not file.is_file():
        raise DataError(f"task '{distribution}': {inside} is missing from its package; reinstall `fairtune[demo]`.")
    return file


def remember_rows(file: Path, rows: int) -> None:
    cached_json("rows", _key(file), lambda: rows)


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
