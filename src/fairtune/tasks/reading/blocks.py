"""Named columns of CSV, TSV and JSONL by Arrow, a block of whole rows at a time: many times as fast as row by row.

Arrow takes for rows some of what Python refuses, and cannot say which row is wrong. So it is given only blocks that look plain, of
which both provably read the same; at the first that does not, or that Arrow refuses, who reads goes on row by row from there on.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fairtune.core.files import parse_json
from fairtune.tasks.reading.files import LONGEST
from fairtune.tasks.reading.formats import DEEPEST, DELIMITERS

BLOCK = 1 << 20
"""Bytes that are read at a time; a row that is longer is not for Arrow."""
MARK = b"\xef\xbb\xbf"
"""What some writers begin a file with to say that it is UTF-8."""
QUOTE, NEWLINE, RETURN, OPEN, CLOSE, LIST = (ord(character) for character in '"\n\r{}[')
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
ColumnBlock = tuple[list[int], dict[str, Any]]
"""The numbers of some rows, and Arrow's array of each column."""


class ColumnBlocks:
    """The rows of a file as far as they are plain.

    Args:
        handle: can go back.
        format: csv, tsv or jsonl.
        delimiter: between the columns of CSV and TSV, where it is not the format's own.

    Attributes:
        position: the byte up to which rows were given.
        rows, lines: how many there are up to it; rows after the header, blank ones too.
        header: the names of all columns of CSV and TSV, once they were read.
        ended: whether nothing is left.
    """

    def __init__(self, handle: IO[bytes], format: str, columns: Sequence[str], delimiter: str | None = None) -> None:
        self._handle, self._format, self._columns = handle, format, columns
        self._delimiter = delimiter or DELIMITERS.get(format, ",")
        self.position = self.rows = self.lines = 0
        self.header: list[str] | None = None
        self.ended = False

    def __iter__(self) -> Iterator[ColumnBlock]:
        """Some rows at a time."""
        left = b""
        while True:
            piece = self._handle.read(BLOCK)
            content = left + piece
            if not content:
                self.ended = self.position > 0
                return
            found = self._read(content, last=not piece)
            if found is None:
                return
            size, block = found
            left = content[size:]
            self.position += size
            if block is not None:
                yield block

    def _read(self, content: bytes, last: bool) -> tuple[int, ColumnBlock | None] | None:
        """How many bytes are whole rows, and those rows; None if they are not plain."""
        marked = len(MARK) if not self.position and content.startswith(MARK) else 0
        content = content[marked:]
        ends = self._row_ends(_around(content), last)
        if ends is None:
            return None
        body = content[: int(ends[-1]) + 1]
        around = _around(body)
        if b"\0" in body or not _is_utf8(body) or not _returns_are_plain(around):
            return None
        read = self._json if self._format == "jsonl" else self._table
        block = read(body, around, ends)
        if block is None:
            return None
        self.lines += body.count(b"\n")
        return marked + len(body), block if block[0] else None

    def _row_ends(self, around: Bytes, last: bool) -> Places | None:
        """Where the rows end: at each line end that is not within quotes; the end of the file is one too."""
        inside = around[1:-1]
        ends = np.flatnonzero(inside == NEWLINE)
        quotes = np.flatnonzero(inside == QUOTE) if self._format in DELIMITERS else np.empty(0, dtype=np.int64)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        if last and len(quotes) % 2 == 0 and not (len(ends) and ends[-1] == len(inside) - 1):
            ends = np.append(ends, len(inside))
        if not len(ends):
            return None
        quotes = quotes[quotes < ends[-1]]
        # Quotes are in pairs if each begins or ends a field, or doubles another.
        ends_field = np.array([NEWLINE, QUOTE, ord(self._delimiter)], dtype=np.uint8)
        begins = np.isin(around[quotes[0::2]], ends_field).all()
        closes = np.isin(around[quotes[1::2] + 2], np.append(ends_field, np.uint8(RETURN))).all()
        return ends if begins and closes else None

    def _table(self, body: bytes, around: Bytes, ends: Places) -> ColumnBlock | None:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        starts = np.append(0, ends[:-1] + 1)
        filled = ~np.isin(around[starts + 1], [NEWLINE, RETURN])
        header = self.header
        if header is None:
            if not filled[0]:
                return None
            text, body, filled = body[: ends[0] + 1].decode(), body[ends[0] + 1 :], filled[1:]
            csv.field_size_limit(LONGEST)
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter))
        # A mark within the file is part of a text, which Arrow would leave out.
        if body.startswith(MARK) or not set(self._columns) <= set(header):
            return None
        places = {column: str(header.index(column)) for column in self._columns}
        numbers = (np.flatnonzero(filled) + 1 + self.rows).tolist()
        if not numbers:
            self.header, self.rows = header, self.rows + len(filled)
            return [], {}
        names = [str(place) for place in range(len(header))]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(body),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=names),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types={place: pa.large_string() for place in places.values()},
                    include_columns=list(dict.fromkeys(places.values())),
                ),
            )
        except pa.ArrowException:  # a row of another width
            return None
        if table.num_rows != len(numbers):
            return None
        self.header, self.rows = header, self.rows + len(filled)
        return numbers, {column: _whole(table.column(place)) for column, place in places.items()}

    def _json(self, body: bytes, around: Bytes, ends: Places) -> ColumnBlock | None:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        if not _is_mapping_per_line(around, ends):
            return None
        schema = self._types_in(body[: ends[0] + 1])
        if schema is None:
            return None
        try:
            table = arrow_json.read_json(
                pa.BufferReader(body),
                arrow_json.ReadOptions(use_threads=False, block_size=len(body) + 1),
                arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
            table.validate(full=True)  # half a character is a text for Arrow
        except pa.ArrowException:
            return None
        if table.num_rows != len(ends) or any(column.null_count for column in table.columns):  # null, or not there
            return None
        numbers = list(range(self.lines + 1, self.lines + 1 + len(ends)))
        self.rows += len(ends)
        return numbers, {column: _whole(table.column(column)) for column in self._columns}

    def _types_in(self, line: bytes) -> Any:
        """What the columns hold in a row, as Arrow calls it; None if a column is not there or holds something else."""
        import pyarrow as pa

        types = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
        try:
            row = parse_json(line)
        except ValueError:
            return None
        found = {column: types.get(type(row.get(column))) for column in self._columns}
        return None if None in found.values() else pa.schema(found)


def _around(content: bytes) -> Bytes:
    """The bytes with a line end before and after them."""
    return np.frombuffer(b"\n" + content + b"\n", dtype=np.uint8)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _returns_are_plain(around: Bytes) -> bool:
    """Whether each carriage return is part of a line end; alone it ends a line too, as it did on old machines."""
    places = np.flatnonzero(around == RETURN)
    return bool((around[places + 1] == NEWLINE).all() and not (len(places) and places[-1] == len(around) - 2))


def _is_mapping_per_line(around: Bytes, ends: Places) -> bool:
    """Whether every line begins and ends as a mapping does, with no more brackets than may be within each other.

    A mapping that goes over lines would have a line end between `}` and `{`, which is nowhere allowed inside of one.
    """
    starts = np.append(0, ends[:-1] + 1)
    closes = ends - (around[ends] == RETURN)
    brackets = np.flatnonzero((around == OPEN) | (around == LIST)) - 1
    most = np.diff(np.searchsorted(brackets, ends), prepend=0).max()
    return bool((around[starts + 1] == OPEN).all() and (around[closes] == CLOSE).all() and most <= DEEPEST)


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
