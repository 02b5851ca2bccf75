"""A file or a folder of shards: the files it is, what it holds, and named columns of all its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fairtune.core.cache import content_hash, key_of
from fairtune.core.errors import DataError, one_of
from fairtune.tasks.reading.files import require_file
from fairtune.tasks.reading.formats import NoColumnError, TextRow, format_of, suffixes
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.reading.row_batch import RowBatch


def shards(path: Path) -> list[Path]:
    """The file itself, or the files of a folder in the order of their names; all of one format.

    Raises:
        DataError: a folder without data files, or with several formats.
    """
    if not path.is_dir():
        format_of(path)
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith((".", "_"))]
    data = [file for file in found if {file.suffix.lower(), file.with_suffix("").suffix.lower()} & set(suffixes())]
    if not data:
        raise DataError(f"{path}: the folder has no data files; allowed: {one_of(suffixes())}, each also .gz.")
    formats = sorted({f".{format_of(file)}" for file in data})
    if len(formats) > 1:
        raise DataError(f"{path}: the folder has files of several formats ({one_of(formats)}); keep one format in it.")
    return data


def file_identity(path: Path) -> str:
    """What a file or a folder of shards holds, as a hash.

    Raises:
        DataError: it is not there or cannot be read.
    """
    files = shards(path)
    for file in files:
        require_file(file)
    try:
        hashes = [content_hash(file) for file in files]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from None
    return hashes[0] if len(hashes) == 1 else key_of(hashes)


def shard_batches(
    path: Path, columns: Sequence[str], text_row: TextRow = "line", encoding: str | None = None
) -> Iterator[RowBatch]:
    """Named columns of all shards, some rows at a time; rows are counted on from one shard to the next.

    Args:
        text_row: what one row of a plain text file is.
        encoding: of the files; None is UTF-8, or what each one's mark says.

    Raises:
        DataError: no such file, unknown format, not UTF-8, a column that is not there, a damaged row.
    """
    done = 0
    for file in shards(path):
        last = 0
        for batch in RowReader(str(file), text_row=text_row, columns=columns, encoding=encoding):
            last = batch.numbers[-1]
            yield replace(batch, numbers=[done + number for number in batch.numbers]) if done else batch
        done += last


def has_column(path: Path, column: str, encoding: str | None = None) -> bool:
    """Whether the first row of a file or a folder of shards has a column.

    Raises:
        DataError: it cannot be read, or a later row lacks the column that the first one has.
    """
    try:
        next(shard_batches(path, [column], encoding=encoding), None)
    except NoColumnError as error:
        if error.from_start:
            return False
        raise
    return True
