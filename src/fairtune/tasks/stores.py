"""Where published data is: a local mirror first, else the hub, which give the same rows; or an installed package."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairtune.core.cache import key_of
from fairtune.core.errors import DataError, one_of
from fairtune.tasks.definitions import DataSet, Definition
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import file_identity, format_of, shards
from fairtune.tasks.reading.reader import RowReader, checked_texts, shard_batches
from fairtune.tasks.reading.rows import NUMBER, Rows, read_rows

MIRROR = "FAIRTUNE_MIRROR"
OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
HUB_ROWS = 500
"""Texts that are taken from the hub at a time."""


def mirror_folder() -> Path | None:
    """The folder that the environment names, be it there or not."""
    named = os.environ.get(MIRROR, "").strip()
    return Path(named).expanduser() if named else None


def mirror_file(data: DataSet, split: str) -> str:
    """Where a mirror keeps a split."""
    return f"{data.folder}/{split}.jsonl.gz"


def mirror_files(task: Definition) -> list[str]:
    """Where a mirror keeps the splits of a task."""
    return [mirror_file(*place) for place in task.places().values()]


def package_file(data: DataSet) -> Path | None:
    """The file of packaged data, found without importing the package; None if it is not there."""
    spec = importlib.util.find_spec(data.package)
    files = [Path(folder) / data.file for folder in (spec and spec.submodule_search_locations) or ()]
    return next(filter(Path.is_file, files), None)


def file_texts(path: Path, column: str, encoding: str | None = None, only: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """A column of a file or of a folder of shards, some rows at a time, no more than are asked for; nothing is an empty text.

    In plain text, one document is a paragraph.

    Args:
        only: a column, and the value it has in the rows that count.
    """
    columns, files = [column, *only[:1]], shards(path)
    if format_of(files[0]) == "txt":
        for file in files:
            yield from RowReader(str(file), columns=columns, encoding=encoding).paragraphs()
        return
    for some in shard_batches(path, columns, encoding):
        texts = [text or "" for text in some.optional_texts(column)]
        if only:
            texts = [text for text, found in zip(texts, some.values(only[0]), strict=True) if found == only[1]]
        yield texts


class Files:
    """A local mirror, with `<task>/<split>.jsonl.gz` and columns named as on the hub; or a file of an installed package."""

    def __init__(self, task: Definition) -> None:
        self.task = task

    def __str__(self) -> str:
        return str(self.task.data) if self.task.data.package else "local mirror"

    def missing(self) -> str:
        """What stands in the way of reading the task here, found without reading it; empty if nothing is known to."""
        task, folder = self.task, mirror_folder() or Path()
        if task.data.package:
            return "" if package_file(task.data) else "its package is not installed; run `pip install 'fairtune[demo]'`"
        if not folder.is_dir():
            return f"{MIRROR} is {folder}, which is not a folder; fix or unset it"
        lacking = one_of(file for file in mirror_files(task) if not (folder / file).is_file())
        return f"the mirror {folder} lacks {lacking}; add it, or unset {MIRROR} to use the hub" if lacking else ""

    def identity(self, data: DataSet, split: str, column: str = "") -> str:
        """What this place holds of a split, or of one column of it, without reading more than it must."""
        return key_of([file_identity(self._file(data, split)), *([data.only] if data.only else []), column])

    def read(self, data: DataSet, split: str, aside: Path) -> Rows:
        """One split; `aside` is a folder for files that need not last."""
        target = aside / f"{data.folder.replace('/', '-')}-{split}.rows"
        rows = read_rows(self._file(data, split), [*self.task.text, *data.only[:1]], self.task.label, target)
        return rows.where_equal(*data.only) if data.only else rows

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:
        """One column of a split from the beginning, some rows at a time."""
        return file_texts(self._file(data, split), column, only=data.only)

    def _file(self, data: DataSet, split: str) -> Path:
        file = package_file(data) if data.package else (mirror_folder() or Path()) / mirror_file(data, split)
        if file is None or not file.is_file():
            raise DataError(f"task '{self.task.name}': {self.missing()}.")
        return file


class Hub:
    """The Hugging Face hub, or its cache on this machine, at the commit that the task pins; it answers as `Files` does."""

    def __init__(self, task: Definition) -> None:
        self.task = task

    def __str__(self) -> str:
        return f"hub {self.task.data}"

    def missing(self) -> str:
        offline = one_of(_forbidding())
        if not offline or all(_is_fetched(data) for data, _ in self.task.places().values()):
            return ""
        return f"no local mirror has it, and {offline} forbids the hub; set {MIRROR} to a folder that has it, or unset {offline}"

    def identity(self, data: DataSet, split: str, column: str = "") -> str:
        return f"hub {data.repository} {data.config} {data.revision} {split} {column}".rstrip()

    def read(self, data: DataSet, split: str, aside: Path) -> Rows:  # noqa: ARG002 - `datasets` has files of its own
        import pyarrow as pa
        import pyarrow.compute as pc

        where, texts, label = f"hub data set {data}, split {split}", self.task.text, self.task.label
        with self._explained(data) as datasets:
            rows = datasets.load_dataset(data.repository, data.config, revision=data.revision, split=split)
        self._require_commit({Path(file["filename"]).parent.name for file in rows.cache_files}, data)
        check_columns(where, rows.column_names, [*texts, label])
        found = rows.data.table
        columns = {name: found.column(name) for name in texts}
        columns[label] = pc.cast(found.column(label), pa.large_string())
        return Rows(where, pa.table({**columns, NUMBER: pa.array(range(1, found.num_rows + 1), pa.int64())}))

    def texts(self, data: DataSet, split: str, column: str) -> Iterator[list[str]]:
        where, number = f"hub data set {data}, split {split}", 1
        with self._explained(data) as datasets:
            datasets.disable_progress_bars()
            builder = datasets.load_dataset_builder(data.repository, data.config, revision=data.revision)
            self._require_commit({Path(builder.cache_dir).name}, data)
            for batch in builder.as_streaming_dataset(split).iter(batch_size=HUB_ROWS):
                check_columns(where, list(batch), [column])
                numbers = range(number, number + len(batch[column]))
                yield [text or "" for text in checked_texts(where, column, batch[column], numbers)]
                number = numbers.stop

    def _require_commit(self, commits: set[str], data: DataSet) -> None:
        """Without network `datasets` takes whatever commit it fetched last."""
        if commits != {data.revision}:
            raise self._unavailable(data, f"in its place is {one_of(sorted(commits))}")

    @contextmanager
    def _explained(self, data: DataSet) -> Iterator[Any]:
        """The `datasets` library; what it raises is said of this task."""
        import datasets

        try:
            yield datasets
        except DataError:
            raise
        except Exception as error:  # network, offline mode, no such data set or commit, a full disk: each its own type
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise self._unavailable(data, reason) from None

    def _unavailable(self, data: DataSet, reason: str) -> DataError:
        """Neither the mirror nor the hub gives the data: why, and the ways out."""
        folder, offline = mirror_folder(), one_of(_forbidding())
        mirror = "not set" if folder is None else f"{folder}, which has no folder {self.task.data.folder}"
        network = f"unset {offline}, which forbids the network" if offline else "connect to the network"
        own = "`train`, `text` and `label`" if self.task.labels else "`kind: language_model` and `train`"
        return DataError(
            f"task '{self.task.name}': no data. {MIRROR} is {mirror}, and the hub did not give {data} ({reason}). Either set "
            f"{MIRROR} to a folder with {one_of(mirror_files(self.task))}; or {network}, so that the hub can be read; or give "
            f"your own files: `task:` with {own}."
        )


def _forbidding() -> list[str]:
    """The variables that forbid the network."""
    return [name for name in OFFLINE if os.environ.get(name, "0").upper() not in ("", "0", "FALSE", "NO", "OFF")]


def _is_fetched(data: DataSet) -> bool:
    """Whether `datasets` prepared the data set at its commit on this machine."""
    home = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    cache = Path(os.environ.get("HF_DATASETS_CACHE") or f"{home}/datasets").expanduser()
    return any(cache.glob(f"*/{data.config}/*/{data.revision}"))


Store = Files | Hub


def find_store(task: Definition) -> Store:
    """The package of the task, or the mirror if it has the task, else the hub."""
    folder = mirror_folder()
    has_no_mirror = folder is None or (folder.is_dir() and not (folder / task.data.folder).is_dir())
    return Hub(task) if has_no_mirror and not task.data.package else Files(task)
