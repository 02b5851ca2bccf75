"""Rows with all their columns, from a file or from standard input, some at a time: memory does not grow with the input."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import parse_json
from fairtune.tasks.reading.files import (
    explain_errors,
    open_file,
    require_file,
    whole_lines,
)
from fairtune.tasks.reading.formats import (
    DELIMITERS,
    FORMATS,
    PLAIN_COLUMN,
    TextRow,
    TextTable,
    check_columns,
    json_rows,
    suffix_of,
    text_rows,
)
from fairtune.tasks.reading.parquet import (
    no_column_twice,
    parquet_batches,
    parquet_source,
    plain_values,
    python_values,
    require_plain,
)
from fairtune.tasks.reading.rows import checked_texts

STDIN = "standard input"
FIRST_ROWS, MOST_ROWS, MOST_CHARACTERS = 256, 4096, 4 << 20
"""The first rows are few, so that the first answers come soon; then enough for batches of one length."""
Row = dict[str, Any]
Numbered = Iterator[tuple[int, int, Row]]
"""A row's number, its size in characters, and its values."""


@dataclass(frozen=True)
class RowBatch:
    """Some rows.

    Args:
        where: the file, for messages.
        numbers: each row's number from 1, after any header; the line number in JSONL and plain text.
        rows: the values by column.
        batch: the same as Arrow has them, where the file is Parquet.
    """

    where: Path | str
    numbers: list[int]
    rows: list[Row]
    batch: Any = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> list[str]:
        """Every column that a row has, in the order of their coming."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self.rows)))

    def texts(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """The texts in one or two columns.

        Raises:
            DataError: a row without the column, with nothing in it (an empty text is a text), or with what is no text.
        """
        return list(zip(*(self._texts(column) for column in columns), strict=True))

    def values(self, column: str) -> list[Any]:
        """What the rows have in a column, None where they do not have it.

        Raises:
            DataError: the column of a Parquet file is of a type that is neither text nor number.
        """
        if self.batch is None:
            return [row.get(column) for row in self.rows]
        require_plain(self.where, self.batch.schema, [column])
        return plain_values(self.where, self.batch, column)

    def _texts(self, column: str) -> list[str]:
        for number, row in zip(self.numbers, self.rows, strict=True):
            if column not in row:
                check_columns(f"{self.where}: row {number}", list(row), [column])
        values = self.values(column)
        found: list[str] = []
        texts = checked_texts(self.where, column, values, self.numbers)
        for number, text in zip(self.numbers, texts, strict=True):
            if text is None:
                raise DataError(f"{self.where}: row {number}: column '{column}' has no text; fill or remove the row.")
            found.append(text)
        return found


def input_format(source: str, given: str | None) -> str | None:
    """How an input is read: as told, else by the file's ending; None is to look at its first line.

    Raises:
        DataError: no known format, or one that cannot be read from there.
    """
    if given is not None and given not in FORMATS:
        raise DataError(f"--format {given}: unknown; allowed: {one_of(FORMATS)}.{nearest(given, FORMATS)}")
    if source == "-":
        if given == "parquet":
            raise DataError("Parquet cannot be read from standard input, as its index is at the end; give the file.")
        return given
    return given or ending(Path(source), FORMATS, "say what it is with --format")


def ending(file: Path, allowed: Sequence[str], otherwise: str) -> str:
    """The format that a file's name ends in, without any .gz."""
    found = suffix_of(file).removeprefix(".")
    if found not in allowed:
        name = file.with_suffix("") if file.suffix.lower() == ".gz" else file
        known = one_of(f".{one}" for one in allowed)
        raise DataError(
            f"{file}: unknown format '{name.suffix or file.name}'; allowed: {known}, also .gz. Or {otherwise}."
        )
    return found


class RowReader:
    """An input: what it is called, its format, and its rows.

    Args:
        source: a file, or `-` for standard input.
        given: the format, where the name does not tell.
        text_row: what one row of plain text is.
    """

    def __init__(self, source: str, given: str | None = None, text_row: TextRow = "line") -> None:
        known, self._text_row = input_format(source, given), text_row
        self.where: Path | str = STDIN if source == "-" else Path(source)
        if isinstance(self.where, Path):
            if not _is_stream(self.where):
                require_file(self.where)
            elif known == "parquet":
                raise DataError(
                    f"{self.where}: Parquet cannot be read from a pipe, as its index is at the end; give the file."
                )
            if self.where.is_dir():
                raise DataError(f"{self.where}: that is a folder; give one file of rows, or `-` for standard input.")
        self._lines: Iterable[str] = ()
        self._open = ExitStack()
        self.format = known or "txt"
        if known != "parquet":
            with explain_errors(self.where):
                self._lines = self._opened_lines()
                if known is None:
                    self.format = self._by_first_line()

    def _opened_lines(self) -> Iterator[str]:
        if isinstance(self.where, Path):
            handle: IO[str] = self._open.enter_context(open_file(self.where))
        else:
            handle = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
        return whole_lines(self.where, handle)

    def _by_first_line(self) -> str:
        first = list(itertools.islice(self._lines, 1))
        self._lines = itertools.chain(first, self._lines)
        try:
            return "jsonl" if first and isinstance(parse_json(first[0]), dict) else "txt"
        except ValueError:
            return "txt"

    def __iter__(self) -> Iterator[RowBatch]:
        """The rows, some at a time; once.

        Raises:
            DataError: a damaged row, a column that is there twice, no row at all.
        """
        with self._open, explain_errors(self.where):
            if self.format == "parquet":
                assert isinstance(self.where, Path)
                found = _parquet(self.where)
            else:
                found = _grouped(self.where, self._rows())
            empty = True
            for chunk in found:
                empty = False
                yield chunk
        if empty:
            raise DataError(f"{self.where}: there are no rows.")

    def _rows(self) -> Numbered:
        lines = iter(self._lines)
        if self.format in DELIMITERS:
            yield from _table_rows(self.where, lines, DELIMITERS[self.format])
        elif self.format == "jsonl":
            yield from json_rows(self.where, lines)
        else:
            for number, size, text in text_rows(lines, self._text_row):
                yield number, size, {PLAIN_COLUMN: text}


def _is_stream(file: Path) -> bool:
    """Whether a shell gave the name, of what another process writes: `<(zcat rows.csv.gz)` is called /dev/fd/63 or so."""
    return file.exists() and file.is_relative_to("/dev")


def _grouped(where: Path | str, rows: Numbered) -> Iterator[RowBatch]:
    numbers: list[int] = []
    values: list[Row] = []
    characters, most = 0, FIRST_ROWS
    for number, size, row in rows:
        numbers.append(number)
        values.append(row)
        characters += size
        if len(numbers) >= most or characters >= MOST_CHARACTERS:
            yield RowBatch(where, numbers, values)
            numbers, values, characters, most = [], [], 0, min(2 * most, MOST_ROWS)
    if numbers:
        yield RowBatch(where, numbers, values)


def _table_rows(where: Path | str, lines: Iterator[str], delimiter: str) -> Numbered:
    table = TextTable(where, lines, delimiter)
    if table.header is None:
        raise DataError(f"{where}: there are no rows, and no header either.")
    no_column_twice(where, table.header)
    for number, row in table:
        yield number, sum(map(len, row)), dict(zip(table.header, row, strict=True))


def _parquet(file: Path) -> Iterator[RowBatch]:
    """Rows as Arrow has them, and as Python does: a few at first, then more, but no more than memory should hold."""
    waiting: list[Any] = []
    done, most = 0, FIRST_ROWS
    batches = parquet_batches(file, parquet_source(file), lambda schema: no_column_twice(file, schema.names))
    for batch in itertools.chain(batches, [None]):
        if batch is not None:
            waiting.append(batch)
        rows, size = sum(map(len, waiting)), sum(part.nbytes for part in waiting)
        if rows and (batch is None or rows >= most or size >= MOST_CHARACTERS):
            for part in _joined(waiting):
                yield _row_batch(file, done, part)
                done += len(part)
            waiting, most = [], min(2 * most, MOST_ROWS)


def _joined(parts: list[Any]) -> list[Any]:
    """The batches as one, where Arrow can make one of their types."""
    import pyarrow as pa

    try:
        return list(pa.Table.from_batches(parts).combine_chunks().to_batches()) if len(parts) > 1 else parts
    except pa.ArrowException:
        return parts


def _row_batch(file: Path, done: int, batch: Any) -> RowBatch:
    names = batch.schema.names
    columns = [python_values(file, batch, name) for name in names]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return RowBatch(file, list(range(done + 1, done + 1 + len(batch))), rows, batch)
