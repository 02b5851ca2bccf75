"""The one reader of rows: all columns or named ones, of a file, a folder or standard input, some rows at a time.

Memory does not grow with the input. Arrow reads tables and Parquet; a line of JSONL may have columns of its own, so each is read as
it is, by Python.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import parse_json
from fairtune.settings.encodings import codec_of
from fairtune.tasks.reading.columns import SEPARATORS, check_columns, choose_columns
from fairtune.tasks.reading.files import (
    DELIMITERS,
    FORMATS,
    LONGEST,
    UTF8,
    decode,
    explain_errors,
    format_of,
    head_of,
    last_line_end,
    long_line,
    open_file,
    require_file,
    shards,
)
from fairtune.tasks.reading.parquet import parquet_tables, plain_column, python_values
from fairtune.tasks.reading.tables import LINE, DelimitedTable

STDIN = "standard input"
FIRST_ROWS, MOST_ROWS = 256, 4096
"""Whole rows are to be answered: the first are few, so that the first answers come soon; then enough for batches of one length."""
PLAIN_COLUMN = "text"
"""What the one column of a plain text file is called."""
Row = dict[str, Any]
Part = tuple[Sequence[int], Any]
"""The numbers of some rows, and an Arrow table or a list of mappings."""


@dataclass(frozen=True)
class RowBatch:
    """Some rows.

    Args:
        where: the file, for messages.
        numbers: each row's number from 1, after any header; the line number in JSONL and plain text.
        data: an Arrow table; or the rows, where each has columns of its own.
    """

    where: Path | str
    numbers: Sequence[int]
    data: Any

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def table(self) -> Any:
        """The rows as Arrow has them; None where each has columns of its own."""
        return None if isinstance(self.data, list) else self.data

    @cached_property
    def rows(self) -> list[Row]:
        """Each row's values by column."""
        if isinstance(self.data, list):
            return self.data
        columns = [python_values(self.where, name, self.data.column(name)) for name in self.columns]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True)]

    @property
    def columns(self) -> list[str]:
        """Every column that a row has, in the order of their coming."""
        if isinstance(self.data, list):
            return list(dict.fromkeys(itertools.chain.from_iterable(self.data)))
        return list(self.data.column_names)

    def values(self, column: str) -> list[Any]:
        """What the rows have in a column, None where they do not have it."""
        if isinstance(self.data, list):
            return [row.get(column) for row in self.data]
        return python_values(self.where, column, plain_column(self.where, self.data, column))

    def texts(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """The texts in one or two columns; an empty text is one, nothing is not."""
        return list(zip(*(self._texts(column) for column in columns), strict=True))

    def _texts(self, column: str) -> list[str]:
        rows = self.data if isinstance(self.data, list) else [self.columns]  # in a table, the first is like all others
        for number, row in zip(self.numbers, rows, strict=False):
            if column not in row:
                check_columns(f"{self.where}: row {number}", list(row), [column])
        texts = self.optional_texts(column)
        if None in texts:
            number = self.numbers[texts.index(None)]
            raise DataError(f"{self.where}: row {number}: column '{column}' has no text; fill or remove the row.")
        return [text for text in texts if text is not None]

    def optional_texts(self, column: str) -> list[str | None]:
        """The texts in a column, None where a row has nothing there."""
        return checked_texts(self.where, column, self.values(column), self.numbers)

    def strings(self, column: str) -> Any:
        """A column of texts as Arrow has it; None of any other."""
        if isinstance(self.data, list):
            return None
        found = plain_column(self.where, self.data, column).combine_chunks()
        return found if found.type == "large_string" else None


def checked_texts(where: Path | str, column: str, values: Sequence[Any], numbers: Sequence[int]) -> list[str | None]:
    """Values that are texts which can be tokenised, or nothing at all."""
    texts = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    for number, text in zip(numbers, texts, strict=True):
        if text is not None and not isinstance(text, str):
            raise DataError(f"{where}: row {number}: column '{column}' holds {str(text)[:60]}, not a text.")
        require_unicode(where, number, column, text or "")
    return texts


def require_unicode(where: Path | str, number: int, column: str, text: str) -> None:
    """Refuse half of a character, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: row {number}: column '{column}' holds half a character ({error.object[error.start]!r}); a text "
            "was cut in the middle of an emoji or the like. Fix or remove it."
        ) from None


class RowReader:
    """An input: what it is called, its format, and its rows.

    Args:
        source: a file, or `-` for standard input.
        given: the format, where the name does not tell.
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
        columns: Sequence[str] | None = None,
        encoding: str | None = None,
    ) -> None:
        self.where: Path | str = STDIN if source == "-" else Path(source)
        self._columns, self._open = columns, ExitStack()
        known = self._known_format(given)
        self.format, self.encoding = known or "txt", UTF8
        if known == "parquet":
            return
        with explain_errors(self.where):
            self.encoding, self._blocks = decode(
                self.where, self._read(), None if encoding is None else codec_of(encoding)
            )
            if known is None:
                self.format = self._by_first_line()
            if self.format in DELIMITERS:
                self._table = DelimitedTable(self.where, self._blocks, DELIMITERS[self.format], columns)
                self.delimiter = self._table.delimiter
            elif self.format == "txt":
                choose_columns(f"{self.where} (plain text)", [PLAIN_COLUMN], columns)

    def _known_format(self, given: str | None) -> str | None:
        """As given, else by the file's ending; None is to look at the first line."""
        if given is not None and given not in FORMATS:
            raise DataError(f"--format {given}: unknown; allowed: {one_of(FORMATS)}.{nearest(given, FORMATS)}")
        known = given
        if isinstance(self.where, Path):
            known = given or format_of(self.where, or_else=" Or say what it is with --format.")
            if not self._is_stream:
                require_file(self.where)
            if self.where.is_dir():
                raise DataError(f"{self.where}: that is a folder; give one file of rows, or `-` for standard input.")
        if known == "parquet" and self._is_stream:
            place = self.where if isinstance(self.where, str) else "a pipe"
            raise DataError(
                f"{self.where}: Parquet cannot be read from {place}, as its index is at the end; give the file."
            )
        return known

    @property
    def _is_stream(self) -> bool:
        """Whether it can be read only once: standard input, or `<(zcat rows.csv.gz)`, which a shell calls /dev/fd/63 or so."""
        where = self.where
        return isinstance(where, str) or (where.exists() and not where.is_file() and where.is_relative_to("/dev"))

    def _read(self) -> Any:
        if isinstance(self.where, str):
            standard: Any = sys.stdin.buffer
            return standard.read1
        handle: Any = self._open.enter_context(open_file(self.where))
        return handle.read1 if self._is_stream else handle.read  # what a stream has so far is to be answered

    def _by_first_line(self) -> str:
        text, _ = head_of(self._blocks, lines=1)
        self._blocks = itertools.chain([text], self._blocks)
        try:
            return "jsonl" if isinstance(parse_json(text.partition("\n")[0]), dict) else "txt"
        except ValueError:
            return "txt"

    def __iter__(self) -> Iterator[RowBatch]:
        """The rows, some at a time; once."""
        most, empty = FIRST_ROWS, True
        with self._open, explain_errors(self.where):
            for numbers, data in self._parts():
                first, empty = 0, False
                while first < len(numbers):
                    size = len(numbers) if self._columns is not None else most
                    data_of = data[first : first + size] if isinstance(data, list) else data.slice(first, size)
                    yield RowBatch(self.where, numbers[first : first + size], data_of)
                    first, most = first + size, min(2 * most, MOST_ROWS)
        # of named columns there may be several shards, and one of them may be empty
        if empty and self._columns is None:
            raise DataError(f"{self.where}: there are no rows.")

    def _parts(self) -> Iterator[Part]:
        if self.format == "parquet":
            assert isinstance(self.where, Path)
            return parquet_tables(self.where, self._columns)
        if self.format in DELIMITERS:
            return iter(self._table)
        if self.format == "jsonl":
            return self._json_rows()
        return self._plain_lines()

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Lines with their ends, some at a time, and the number of the first."""
        done, left = 0, ""
        for block in itertools.chain(self._blocks, [None]):
            text = left + (block or "")
            end = len(text) if block is None else last_line_end(text)
            lines, left = LINE.findall(text[:end]), text[end:]
            if len(text) > LONGEST:
                for number, line in enumerate([*lines, left], done + 1):
                    if len(line) > LONGEST:
                        raise long_line(self.where, number)
            yield done + 1, lines
            done += len(lines)

    def _json_rows(self) -> Iterator[Part]:
        """Each mapping with its line's number; blank lines are left out."""
        wanted = set(self._columns or ())
        for first, lines in self._lines():
            filled = {number: line for number, line in enumerate(lines, first) if not line.isspace()}
            rows, fault = [], None
            with suppress(ValueError):
                rows = parse_json(f"[{','.join(filled.values())}]")
            if len(rows) != len(filled) or not all(isinstance(row, dict) and row.keys() >= wanted for row in rows):
                rows, fault = self._sound_rows(filled)
            if rows:
                yield list(filled)[: len(rows)], rows
            if fault is not None:
                raise fault

    def _sound_rows(self, lines: Mapping[int, str]) -> tuple[list[Row], DataError | None]:
        """The rows before the first line that is no row, and what is wrong with that."""
        rows: list[Row] = []
        for number, line in lines.items():
            try:
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise DataError(f"{self.where}: line {number} is not a JSON mapping.")
                check_columns(f"{self.where}: line {number}", list(row), self._columns or ())
            except ValueError as error:
                return rows, DataError(f"{self.where}: line {number} is not JSON: {error}.")
            except DataError as error:
                return rows, error
            rows.append(row)
        return rows, None

    def _plain_lines(self) -> Iterator[Part]:
        """A blank line is an empty text, so that answers stand beside their lines."""
        import pyarrow as pa

        for first, lines in self._lines():
            if lines:
                texts = pa.array([line.rstrip("\r\n") for line in lines], pa.large_string())
                yield range(first, first + len(lines)), pa.table({PLAIN_COLUMN: texts})

    def paragraphs(self) -> Iterator[list[str]]:
        """The texts between the blank lines of plain text, some at a time. A very long one is cut at the end of a line."""
        found: list[str] = []
        size = 0
        with self._open, explain_errors(self.where):
            for _, lines in itertools.chain(self._lines(), [(0, ["\n"])]):
                texts = []
                for line in lines:
                    text = line.replace("\r\n", "\n")
                    if found and (not text.strip() or size + len(text) > LONGEST):
                        texts.append("".join(found).rstrip())
                        found, size = [], 0
                    if text.strip():
                        found.append(text)
                        size += len(text)
                yield texts


def form_note(reader: RowReader) -> str | None:
    """What to say of an input that is not written as its format has it; None where it is."""
    found = []
    if reader.encoding != UTF8:
        found.append(f"encoded as {reader.encoding}")
    if reader.delimiter is not None and reader.delimiter != DELIMITERS[reader.format]:
        found.append(f"its columns separated by {SEPARATORS[reader.delimiter]}")
    return f"{reader.where}: read as {' and '.join(found)}." if found else None


def shard_batches(
    path: Path,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    called: str | None = None,
) -> Iterator[RowBatch]:
    """Columns of a file or of all shards of a folder, some rows at a time; rows are counted on from one shard to the next.

    Args:
        called: what messages call it, where its name would tell a user nothing.
    """
    done = 0
    for file in shards(path):
        last = 0
        for batch in RowReader(str(file), columns=columns, encoding=encoding):
            last = batch.numbers[-1]
            numbers = [done + number for number in batch.numbers] if done else batch.numbers
            yield replace(batch, where=called or path, numbers=numbers)
        done += last


def first_columns(path: Path, encoding: str | None = None) -> Sequence[str]:
    """The columns that the first row of a file or a folder of shards has."""
    found = next(shard_batches(path, encoding=encoding))
    return list(found.rows[0]) if found.table is None else found.columns
