"""The one reader of rows: all columns or named ones, of a file or standard input, some rows at a time.

Memory does not grow with the input, and a Parquet file is read in the columns asked for only.
"""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import parse_json
from fairtune.settings.encodings import codec_of
from fairtune.tasks.reading.blocks import ColumnBlocks
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
    choose_columns,
    json_rows,
    suffix_of,
    text_rows,
)
from fairtune.tasks.reading.parquet import (
    joined,
    parquet_batches,
    parquet_source,
    plain_column,
    python_values,
    require_plain,
)
from fairtune.tasks.reading.row_batch import RowBatch
from fairtune.tasks.reading.text_form import SEPARATORS, UTF8, file_delimiter, find_delimiter, find_encoding

STDIN = "standard input"
FIRST_ROWS, MOST_ROWS, MOST_CHARACTERS = 256, 4096, 4 << 20
"""Whole rows are to be answered: the first are few, so that the first answers come soon; then enough for batches of one length."""
COLUMN_ROWS = 10_000
"""Rows of which named columns are read at a time."""
Part = tuple[int, int, int, Any]
"""The number of its first row, how many rows it is, its size in characters, and their values: a whole row by column, a row's
values in the named columns, or some rows as Arrow has them."""


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
        columns: the ones to read; None for all.
        encoding: as a user calls it; None is UTF-8, or what the file's mark says.

    Attributes:
        encoding: as Python calls it.
        delimiter: what separates the columns of CSV and TSV; None in other formats.
    """

    delimiter: str | None = None

    def __init__(
        self,
        source: str,
        given: str | None = None,
        text_row: TextRow = "line",
        columns: Sequence[str] | None = None,
        encoding: str | None = None,
    ) -> None:
        known, self._text_row, self._columns = input_format(source, given), text_row, columns
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
        self._handle: Any = None
        self._lines: Iterable[str] = ()
        self._open = ExitStack()
        self.format = known or "txt"
        self.encoding = UTF8 if encoding is None else codec_of(encoding, "--encoding")
        if known != "parquet":
            with explain_errors(self.where):
                if isinstance(self.where, Path) and not _is_stream(self.where):
                    self.encoding = find_encoding(self.where, encoding)
                self._lines = self._opened_lines()
                if known is None:
                    self.format = self._by_first_line()
        if self.format in DELIMITERS:
            self.delimiter = self._separator()

    def _opened_lines(self) -> Iterator[str]:
        if isinstance(self.where, Path):
            handle: IO[str] = self._open.enter_context(open_file(self.where, encoding=self.encoding))
            self._handle = None if _is_stream(self.where) else handle
        else:
            handle = io.TextIOWrapper(sys.stdin.buffer, encoding=self.encoding, newline="")
        return whole_lines(self.where, handle)

    def _separator(self) -> str:
        """Of a stream by its header and its first line, since the next may be long in coming."""
        usual = DELIMITERS[self.format]
        if isinstance(self.where, Path) and not _is_stream(self.where):
            return file_delimiter(self.where, self.encoding, usual, self._columns)
        with explain_errors(self.where):
            first = list(itertools.islice(self._lines, 2))
        self._lines = itertools.chain(first, self._lines)
        return find_delimiter(first, usual, self._columns)

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
            DataError: a damaged row, a column that is not there or there twice, no row at all where whole ones are asked for.
        """
        empty = True
        with self._open, explain_errors(self.where):
            for batch in self._parquet() if self.format == "parquet" else self._text():
                empty = False
                yield batch
        if empty and self._columns is None:  # a shard may be empty, so who names columns looks at all of them
            raise DataError(f"{self.where}: there are no rows.")

    def _text(self) -> Iterator[RowBatch]:
        """The rows of CSV, TSV, JSONL and plain text."""
        lines, columns = iter(self._lines), self._columns
        rows_before = lines_before = 0
        header = None
        by_blocks = self._handle is not None and self.encoding == UTF8 and self.format in (*DELIMITERS, "jsonl")
        if columns is not None and by_blocks:
            blocks = ColumnBlocks(self._handle.buffer, self.format, columns, self.delimiter)
            for numbers, arrays in blocks:
                yield RowBatch(self.where, numbers, arrays)
            if blocks.ended:
                return
            self._handle.seek(blocks.position)
            rows_before, lines_before, header = blocks.rows, blocks.lines, blocks.header
            lines = whole_lines(self.where, self._handle, lines_before)
        if self.delimiter is not None:
            table = TextTable(self.where, lines, self.delimiter, header, (rows_before, lines_before))
            parts = _table_parts(table, self.where, columns)
        elif self.format == "jsonl":
            parts = _json_parts(self.where, lines, columns, lines_before)
        else:
            choose_columns(f"{self.where} (plain text)", [PLAIN_COLUMN], columns)
            found = text_rows(lines, self._text_row)
            parts = ((number, 1, size, (text,) if columns else {PLAIN_COLUMN: text}) for number, size, text in found)
        for numbers, values in self._grouped(parts, columns):
            yield RowBatch(self.where, numbers, values)

    def _parquet(self) -> Iterator[RowBatch]:
        """The rows of Parquet; where all columns are asked for, also as Arrow has them, so that they can be written so again."""
        assert isinstance(self.where, Path)
        for (first, *_), batches in self._grouped(_parquet_parts(self.where, self._columns), None):
            if self._columns is None:
                for batch in joined(batches):
                    values = {name: python_values(self.where, batch, name) for name in batch.schema.names}
                    yield RowBatch(self.where, list(range(first, first + len(batch))), values, batch)
                    first += len(batch)
            else:
                columns = {name: plain_column(self.where, batches, name) for name in self._columns}
                yield RowBatch(self.where, list(range(first, first + sum(map(len, batches)))), columns)

    def _grouped(self, parts: Iterator[Part], columns: Sequence[str] | None) -> Iterator[tuple[list[int], Any]]:
        """As many parts at a time as memory should hold: their numbers, and their values as they are, or by named columns.

        Named columns are filled at once: of a list for each row, Python's collector would look through all again and again.
        """
        most, limit = (FIRST_ROWS, MOST_ROWS) if self._columns is None else (COLUMN_ROWS, COLUMN_ROWS)
        while True:
            numbers: list[int] = []
            whole: list[Any] = []
            named: dict[str, list[Any]] = {column: [] for column in columns or ()}
            filled = list(named.values())
            rows = characters = 0
            for number, count, size, values in parts:
                numbers.append(number)
                if columns is None:
                    whole.append(values)
                else:
                    for column, value in zip(filled, values, strict=True):
                        column.append(value)
                rows += count
                characters += size
                if rows >= most or characters >= MOST_CHARACTERS:
                    break
            if not numbers:
                return
            yield numbers, whole if columns is None else named
            most = min(2 * most, limit)


def form_note(reader: RowReader) -> str | None:
    """What to say of an input that is not written as its format has it; None where it is."""
    found = []
    if reader.encoding != UTF8:
        found.append(f"encoded as {reader.encoding}")
    if reader.delimiter is not None and reader.delimiter != DELIMITERS[reader.format]:
        found.append(f"its columns separated by {SEPARATORS[reader.delimiter]}")
    return f"{reader.where}: read as {' and '.join(found)}." if found else None


def _is_stream(file: Path) -> bool:
    """Whether a shell gave the name, of what another process writes: `<(zcat rows.csv.gz)` is called /dev/fd/63 or so."""
    return file.exists() and not file.is_file() and file.is_relative_to("/dev")


def _table_parts(table: TextTable, where: Path | str, columns: Sequence[str] | None) -> Iterator[Part]:
    chosen = choose_columns(where, table.header, columns, take_first=True)
    places = [table.header.index(column) for column in columns or ()]
    for number, cells in table:
        if columns is None:
            yield number, 1, sum(map(len, cells)), dict(zip(chosen, cells, strict=True))
        else:
            row = [cells[place] for place in places]
            yield number, 1, sum(map(len, row)), row


def _json_parts(where: Path | str, lines: Iterator[str], columns: Sequence[str] | None, before: int) -> Iterator[Part]:
    first, wanted = not before, set(columns or ())
    for number, size, row in json_rows(where, lines, before):
        if columns is None:
            yield number, 1, size, row
        else:
            if not row.keys() >= wanted:
                check_columns(f"{where}: line {number}", list(row), columns, from_start=first)
            first = False
            yield number, 1, size, [row[column] for column in columns]


def _parquet_parts(file: Path, columns: Sequence[str] | None) -> Iterator[Part]:
    def choose(schema: Any) -> Sequence[str] | None:
        chosen = choose_columns(file, schema.names, columns)
        require_plain(file, schema, [] if columns is None else chosen)
        return columns

    done = 0
    for batch in parquet_batches(file, parquet_source(file), choose):
        if len(batch):
            yield done + 1, len(batch), batch.nbytes, batch
            done += len(batch)
