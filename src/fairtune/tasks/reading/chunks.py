"""Named columns of a file or of a folder of shards, in chunks of rows, so that memory does not grow with the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.cache import content_hash, key_of
from fairtune.core.errors import DataError, one_of
from fairtune.tasks.reading.files import (
    explain_errors,
    open_file,
    require_file,
    whole_lines,
)
from fairtune.tasks.reading.formats import (
    DELIMITERS,
    PLAIN_COLUMN,
    NoColumnError,
    TextRow,
    TextTable,
    check_columns,
    format_of,
    json_rows,
    suffixes,
    text_rows,
)
from fairtune.tasks.reading.parquet import (
    no_column_twice,
    parquet_batches,
    parquet_source,
    plain_values,
    require_plain,
)

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


def read_chunks(file: Path, columns: Sequence[str], text_row: TextRow = "line") -> Iterator[Chunk]:
    """The named columns of a file, some rows at a time.

    Args:
        text_row: what one row of a plain text file is.

    Raises:
        DataError: no such file, unknown format, not UTF-8, a column that is not there, a damaged row.
    """
    found = format_of(file)
    require_file(file)
    with explain_errors(file):
        if found == "parquet":
            yield from _parquet_chunks(file, columns)
            return
        with open_file(file) as handle:
            yield from _chunked(columns, _values(file, found, whole_lines(file, handle), columns, text_row))


def _chunked(columns: Sequence[str], rows: Iterator[tuple[int, int, list[Any]]]) -> Iterator[Chunk]:
    """Rows with their numbers and sizes, put together."""
    chunk = Chunk.empty(columns)
    filled = list(chunk.values.values())
    for number, size, row in rows:
        for values, value in zip(filled, row, strict=True):
            values.append(value)
        chunk.numbers.append(number)
        chunk.size += size
        if chunk.full:
            yield chunk
            chunk = Chunk.empty(columns)
            filled = list(chunk.values.values())
    yield chunk


def _values(
    file: Path, found: str, lines: Iterator[str], columns: Sequence[str], text_row: TextRow
) -> Iterator[tuple[int, int, list[Any]]]:
    """Each row's number, its size in characters, and its values in the named columns."""
    if found in DELIMITERS:
        table = TextTable(file, lines, DELIMITERS[found])
        if table.header is None:
            raise DataError(f"{file}: the file is empty.")
        check_columns(file, table.header, columns)
        places = [table.header.index(column) for column in columns]
        for number, cells in table:
            row = [cells[place] for place in places]
            yield number, sum(map(len, row)), row
    elif found == "jsonl":
        first = True
        for number, size, fields in json_rows(file, lines):
            if any(column not in fields for column in columns):
                check_columns(f"{file}: line {number}", list(fields), columns, from_start=first)
            first = False
            yield number, size, [fields[column] for column in columns]
    else:
        check_columns(f"{file} (plain text)", [PLAIN_COLUMN], columns)
        for number, size, text in text_rows(lines, text_row):
            yield number, size, [text] * len(columns)


def _parquet_chunks(file: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    def wanted(schema: Any) -> Sequence[str]:
        check_columns(file, schema.names, columns)
        no_column_twice(file, [name for name in schema.names if name in columns])
        require_plain(file, schema, columns)
        return columns

    chunk, last = Chunk.empty(columns), 0
    for batch in parquet_batches(file, parquet_source(file), wanted):
        for column in columns:
            chunk.values[column] += plain_values(file, batch, column)
        chunk.numbers += range(last + 1, last + 1 + len(batch))
        chunk.size += batch.nbytes
        last += len(batch)
        if chunk.full:
            yield chunk
            chunk = Chunk.empty(columns)
    yield chunk


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


def shard_chunks(path: Path, columns: Sequence[str], text_row: TextRow = "line") -> Iterator[Chunk]:
    """The rows of all shards; rows are counted on from one shard to the next.

    Args:
        text_row: what one row of a plain text file is.
    """
    done = 0
    for file in shards(path):
        last = 0
        for chunk in read_chunks(file, columns, text_row):
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
