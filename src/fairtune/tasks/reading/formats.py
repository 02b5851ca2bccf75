"""How each file format is read: in chunks of rows, so that memory does not grow with the file."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import parse_json
from fairtune.tasks.reading.chunks import Chunk
from fairtune.tasks.reading.files import LONGEST, open_file, whole_lines
from fairtune.tasks.reading.parquet import (
    no_column_twice,
    parquet_batches,
    parquet_source,
    plain_values,
    require_plain,
)

LONGEST_ROW = 4 * LONGEST
"""Characters in a row of a table, which may go over many lines."""
DEEPEST = 100
"""Lists and mappings within each other in a line of JSON: Python itself writes, shows and compares some hundreds at most."""
COLUMNS_SHOWN, COLUMN_SHOWN, COLUMNS_COMPARED = 50, 60, 1000
PLAIN_COLUMN = "text"
"""What the one column of a plain text file is called."""


def format_of(file: Path) -> str:
    """The suffix that says how a file is read, without any .gz."""
    kind = file.with_suffix("").suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    if kind not in READERS:
        raise DataError(f"{file}: unknown format '{kind or file.name}'; allowed: {one_of(READERS)}, each also .gz.")
    return kind


class NoColumnError(DataError):
    """A file lacks a column: from its first row on, or in a later one only."""

    from_start = True


def check_columns(where: object, found: Sequence[str], wanted: Sequence[str], from_start: bool = True) -> None:
    """Refuse data that lacks a column."""
    for column in wanted:
        if column not in found:
            shown = one_of(name[:COLUMN_SHOWN] for name in found[:COLUMNS_SHOWN])
            more = f" and {len(found) - COLUMNS_SHOWN:,} more" if len(found) > COLUMNS_SHOWN else ""
            near = nearest(column, found[:COLUMNS_COMPARED])
            error = NoColumnError(f"{where}: no column '{column}'; columns: {shown}{more}.{near}")
            error.from_start = from_start
            raise error


class RowLines:
    """Lines for a reader of tables, which joins as many as quotes ask for: more than a row has are a quote left open.

    Args:
        size: characters since the row began; to be set to 0 after each.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self.size, self._lines = 0, lines

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.size += len(line)
            if self.size > LONGEST_ROW:
                raise csv.Error("a row larger than field limit")
            yield line


def _read_table(file: Path, columns: Sequence[str], delimiter: str) -> Iterator[Chunk]:
    csv.field_size_limit(LONGEST)
    with open_file(file) as handle:
        lines = RowLines(whole_lines(file, handle))
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        began = 1
        try:
            header = next(reader, None)
            if header is None:
                raise DataError(f"{file}: the file is empty.")
            check_columns(file, header, columns)
            places, width = [header.index(column) for column in columns], len(header)
            chunk, began = Chunk.empty(columns), reader.line_num + 1
            filled = list(zip(chunk.values.values(), places, strict=True))
            for number, row in enumerate(reader, start=1):
                lines.size = 0
                if row:
                    if len(row) != width:
                        raise DataError(
                            f"{file}: row {number} (line {began}) has {len(row)} fields, the header has {width}; "
                            "quote texts that contain the separator, and close every quote."
                        )
                    for values, place in filled:
                        values.append(row[place])
                        chunk.size += len(row[place])
                    chunk.numbers.append(number)
                    if chunk.full:
                        yield chunk
                        chunk = Chunk.empty(columns)
                        filled = list(zip(chunk.values.values(), places, strict=True))
                began = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{file}: {wrong_quotes(str(error), began, reader.line_num)}") from None
        yield chunk


def wrong_quotes(error: str, began: int, line: int) -> str:
    """What is wrong with a row that began on a line."""
    if "unexpected end of data" in error or "larger than field limit" in error:
        wrong = f"a quote that is opened in the row of line {began} is not closed"
    elif began != line:
        wrong = f"{error} in the row that began on line {began}, where a quote may have been left open"
    else:
        wrong = f"{error} on line {began}"
    return f'{wrong}; close it, and write a quote inside a text as "".'


def json_row(where: Path | str, number: int, line: str) -> dict[str, Any]:
    """The mapping that a line of JSONL is."""
    try:
        row = parse_json(line)
    except ValueError as error:
        raise DataError(f"{where}: line {number} is not JSON: {error}.") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: line {number} is not a JSON mapping.")
    if _is_deep(row):
        raise DataError(f"{where}: line {number} is nested more than {DEEPEST} levels deep; flatten or remove it.")
    return row


def _is_deep(row: dict[str, Any]) -> bool:
    level: list[Any] = [value for value in row.values() if isinstance(value, dict | list)]
    for _ in range(DEEPEST):
        if not level:
            return False
        inside = itertools.chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)
        level = [value for value in inside if isinstance(value, dict | list)]
    return True


def _read_jsonl(file: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    chunk = Chunk.empty(columns)
    with open_file(file) as handle:
        for number, line in enumerate(whole_lines(file, handle), start=1):
            if not line.strip():
                continue
            row = json_row(file, number, line)
            try:
                for column in columns:
                    chunk.values[column].append(row[column])
            except KeyError:
                check_columns(f"{file}: line {number}", list(row), columns, from_start=not chunk.numbers)
            chunk.numbers.append(number)
            chunk.size += len(line)
            if chunk.full:
                yield chunk
                chunk = Chunk.empty(columns)
    yield chunk


def _read_parquet(file: Path, columns: Sequence[str]) -> Iterator[Chunk]:
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


def _read_plain(file: Path, columns: Sequence[str]) -> Iterator[Chunk]:
    """A row is a paragraph: the lines between blank ones. A very long one is cut at the end of a line."""
    check_columns(f"{file} (plain text)", [PLAIN_COLUMN], columns)
    chunk = Chunk.empty(columns)
    lines: list[str] = []
    size = began = 0

    def paragraph() -> None:
        chunk.values[PLAIN_COLUMN].append("".join(lines).rstrip())
        chunk.numbers.append(began)
        chunk.size += size

    with open_file(file) as handle:
        for number, line in enumerate(whole_lines(file, handle), start=1):
            text = line.replace("\r\n", "\n")
            if lines and (not text.strip() or size + len(text) > LONGEST):
                paragraph()
                lines, size = [], 0
            if text.strip():
                began = began if lines else number
                lines.append(text)
                size += len(text)
            if chunk.full:
                yield chunk
                chunk = Chunk.empty(columns)
    if lines:
        paragraph()
    yield chunk


READERS: dict[str, Callable[[Path, Sequence[str]], Iterator[Chunk]]] = {
    ".csv": lambda file, columns: _read_table(file, columns, ","),
    ".tsv": lambda file, columns: _read_table(file, columns, "\t"),
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
    ".txt": _read_plain,
}
