"""Where published data sets are kept: a local mirror first, else the hub. Both give the same rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from fairtune.errors import DataError, one_of
from fairtune.tasks.definitions import DataSet, Definition
from fairtune.tasks.formats import check_columns
from fairtune.tasks.rows import NUMBER, Rows
from fairtune.tasks.sources import file_identity, read_rows

MIRROR = "FAIRTUNE_MIRROR"
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
    named = os.environ.get(MIRROR, "").strip()
    if not named:
        return Hub(task, f"{MIRROR} is not set")
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"{MIRROR}: {folder} is not a folder; name one with {_layout(task)}, or unset it to use the hub."
        )
    if (folder / task.data.folder).is_dir():
        return Mirror(task.name, folder)
    return Hub(task, f"{MIRROR} is {folder}, which has no folder {task.data.folder}")


class Mirror:
    """A folder with `<task>/<split>.jsonl.gz`, columns named as on the hub."""

    def __init__(self, task: str, folder: Path) -> None:
        self._task, self._folder = task, folder

    def __str__(self) -> str:
        return "local mirror"

    def identity(self, data: DataSet, split: str) -> str:
        return file_identity(self._file(data, split))

    def read(self, data: DataSet, split: str, texts: Sequence[str], label: str | None, aside: Path) -> Rows:
        return read_rows(self._file(data, split), texts, label, aside / f"{data.folder.replace('/', '-')}-{split}.rows")

    def _file(self, data: DataSet, split: str) -> Path:
        file = self._folder / data.folder / f"{split}.jsonl.gz"
        if not file.is_file():
            there = sorted(path.name for path in file.parent.glob("*.jsonl.gz"))
            raise DataError(
                f"task '{self._task}': the mirror lacks {data.folder}/{file.name} ({file}); in that folder: "
                f"{one_of(there) or 'no .jsonl.gz files'}. Add it, or unset {MIRROR} to read the task from the hub."
            )
        return file


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
            except Exception as error:  # network, offline mode, no such data set, a full disk: each its own kind
                raise DataError(self._no_way(data, str(error).strip() or type(error).__name__)) from None
            commits = {Path(file["filename"]).parent.name for split in found.values() for file in split.cache_files}
            if commits != {data.revision}:  # without network `datasets` takes whatever commit it fetched last
                raise DataError(self._no_way(data, f"in its place is {one_of(sorted(commits))}"))
            self._loaded[data] = found
        return self._loaded[data]

    def _no_way(self, data: DataSet, error: str) -> str:
        reason = error.splitlines()[0].rstrip(".")
        offline = [name for name in OFFLINE if os.environ.get(name, "0").upper() not in ("", "0", "FALSE", "NO", "OFF")]
        network = f"unset {one_of(offline)}, which forbids the network" if offline else "connect to the network"
        return (
            f"task '{self._task.name}': no data. {self._no_mirror}, and the hub did not give {data} ({reason}). "
            f"Either set {MIRROR} to a folder with {_layout(self._task)}; or {network}, so that the hub can be read; "
            "or give your own files: `task:` with `train`, `text` and `label`."
        )


def _layout(task: Definition) -> str:
    """The files that a mirror needs for a task."""
    train = (task.trained_on or task.data).folder
    wanted = [f"{train}/train", *(f"{task.data.folder}/{split}" for split in (task.validation, task.test) if split)]
    return one_of(f"{name}.jsonl.gz" for name in wanted)
