"""FIXME."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.cache import content_hash, key_of
from fairtune.core.errors import DataError, one_of
from fairtune.tasks.reading.files import (
    require_file,
    told_of,
)
from fairtune.tasks.reading.formats import READERS, NoColumnError, format_of

CHUNK_ROWS, CHUNK_CHARACTERS = 10_000, 4 << 20


@dataclass
class Chunk:
    """Some rows of a file.

    Args:
        numbers: each row's number in the file, from 1 after any header; the line number in plain text.
    """

    values: dict[str, list[Any]]
    numbers: list[int] = field(default_factory=list)
    size: int = 0

    @classmethod
    def empty(cls, columns: Sequence[str]) -> Chunk:
        return cls({column: [] for column in columns})

    @property
    def full(self) -> bool:
        return len(self.numbers) >= CHUNK_ROWS or self.size >= CHUNK_CHARACTERS


def read_chunks(file: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    """The named columns of a file, some rows at a time.

    Raises:
        DataError: no such file, unknown format, not UTF-8, a column that is not there, a damaged row.
    """
    kind = format_of(file)
    require_file(file)
    with told_of(file):
        yield from READERS[kind](file, columns)


def shards(path: Path) -> list[Path]:
    """The file itself, or the files of a folder in the order of their names; all of one format.

    Raises:
        DataError: a folder without data files, or with several formats.
    """
    if not path.is_dir():
        format_of(path)
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith((".", "_"))]
    data = [file for file in found if {file.suffix.lower(), file.with_suffix("").suffix.lower()} & set(READERS)]
    if not data:
        raise DataError(f"{path}: the folder has no data files; allowed: {one_of(READERS)}, each also .gz.")
    kinds = sorted({format_of(file) for file in data})
    if len(kinds) > 1:
        raise DataError(f"{path}: the folder has files of several formats ({one_of(kinds)}); keep one kind in it.")
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


def shard_chunks(path: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    """The rows of all shards; rows are counted on from one shard to the next."""
    done = 0
    for file in shards(path):
        last = 0
        for chunk in read_chunks(file, columns):
            last = chunk.numbers[-1] if chunk.numbers else last
            chunk.numbers = [done + number for number in chunk.numbers]
            yield chunk
        done += last


def has_column(path: Path, column: str) -> bool:
    """Whether the first row of a file or a folder of shards has a column.

    Raises:
        DataError: it cannot be read, or a later row lacks the column that the first one has.
    """
    try:
        next(shard_chunks(path, [column]), None)
    except NoColumnError as error:
        if error.from_start:
            return False
        raise
    return True
