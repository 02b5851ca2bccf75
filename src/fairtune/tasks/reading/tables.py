"""CSV and TSV: whole rows are found in a text, Arrow reads them, and Python's csv module names the row that neither can take."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError
from fairtune.tasks.reading.columns import SEPARATORS, choose_columns
from fairtune.tasks.reading.files import LONGEST, head_of, last_line_end, long_line

LOOKED_AT = 51
"""The header and the rows that have to be as wide, before a separator is believed that no one asked for."""
LONGEST_ROW = 4 * LONGEST
"""Characters in a row, which may go over many lines."""
LINE = re.compile(r"[^\r\n]*+(?:\r\n|\n|\r)|[^\r\n]++")
BLANK = ("\n", "\r\n", "\r")


@cache
def _row(delimiter: str) -> re.Pattern[str]:
    """A whole row with its line end; possessive, so that a row is found in one pass or not at all."""
    mark = re.escape(delimiter)
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"|[^"{mark}\r\n][^{mark}\r\n]*+)?+'
    return re.compile(rf"{field}(?:{mark}{field})*+(?:\r\n|\n|\r(?!\Z))")


@cache
def _rows(delimiter: str, most: int | None = None) -> re.Pattern[str]:
    times = "*" if most is None else f"{{0,{most}}}"
    return re.compile(f"(?:{_row(delimiter).pattern}){times}+")


class DelimitedTable:
    """The rows of CSV or TSV.

    Args:
        where: the file, for messages.
        blocks: its text.
        usual: what separates the columns of its format.
        columns: to read; None for all.

    Attributes:
        delimiter: what separates the columns.

    Raises:
        DataError: there is nothing at all, a column is not there, or a quote in the header is not closed.
    """

    def __init__(self, where: Path | str, blocks: Iterator[str], usual: str, columns: Sequence[str] | None) -> None:
        self._where, self._blocks, self._columns = where, blocks, columns
        self._text, self._ended = head_of(blocks, lines=2)
        self.delimiter = _find_delimiter(self._text, usual, columns)
        self._header: list[str] | None = None
        self._rows = self._lines = 0

    def __iter__(self) -> Iterator[tuple[Sequence[int], Any]]:
        """Some rows at a time: their numbers, which count blank lines too, and an Arrow table.

        Raises:
            DataError: a column that is not there, a quote that is not closed, or a row that is not as wide as the header.
        """
        text, rows = self._text, _rows(self.delimiter)
        while True:
            if self._ended and text[-1:] not in ("", "\n"):
                text += "\n"
            if self._header is None:
                text = self._without_header(text)
            found = rows.match(text) if '"' in text else None
            end = found.end() if found else last_line_end(text)
            if len(text) > LONGEST or (self._ended and end < len(text)):
                good, error = self._fault(text, whole=self._ended)
                if error is not None:
                    yield from self._read(text[:good])
                    raise error
                end = len(text) if self._ended else end
            yield from self._read(text[:end])
            if self._ended:
                break
            block = next(self._blocks, None)
            self._ended = block is None
            text = text[end:] + (block or "")
        if self._header is None:
            raise DataError(f"{self._where}: the file is empty, with no header and no rows.")

    def _without_header(self, text: str) -> str:
        row = _row(self.delimiter).match(text)
        if row is None:
            return text
        if row[0] in BLANK:
            raise DataError(f"{self._where}: line 1 is blank; it must name the columns.")
        self._header = _names(row[0], self.delimiter)
        self._chosen = choose_columns(self._where, self._header, self._columns, take_first=True)
        self._lines = _line_ends(row[0])
        return text[row.end() :]

    def _read(self, text: str) -> Iterator[tuple[Sequence[int], Any]]:
        import pyarrow as pa

        if not text or self._header is None:
            return
        try:
            table = self._table(text)
        except pa.ArrowInvalid as invalid:
            good, error = self._fault(text, whole=True)
            if error is None:
                raise DataError(f"{self._where}: {invalid}") from None
            yield from self._read(text[:good])
            raise error from None
        numbers: Sequence[int] = range(self._rows + 1, self._rows + 1 + table.num_rows)
        ends = _line_ends(text)
        if ends > table.num_rows:  # blank lines, or texts that go over several
            rows = [found[0] for found in _row(self.delimiter).finditer(text)]
            numbers = [number for number, row in enumerate(rows, self._rows + 1) if row not in BLANK]
            self._rows += len(rows)
        else:
            self._rows += table.num_rows
        self._lines += ends
        if table.num_rows:
            yield numbers, table

    def _table(self, text: str) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        header = self._header or []
        places = [str(header.index(column)) for column in self._chosen]
        content = text.encode("utf-8-sig" if text[0] == "\ufeff" else "utf-8")  # Arrow takes one mark away
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=list(map(str, range(len(header))))
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(places, pa.large_string()), include_columns=places),
        ).rename_columns(list(self._chosen))

    def _fault(self, text: str, whole: bool) -> tuple[int, DataError | None]:
        """Where the first row begins that is wrong, and what is wrong with it.

        Args:
            whole: whether the text ends with a row; else it may go on.
        """
        csv.field_size_limit(LONGEST)
        taken = good = 0

        def lines() -> Iterator[str]:
            nonlocal taken
            for number, found in enumerate(LINE.finditer(text), self._lines + 1):
                if len(found[0]) > LONGEST:
                    raise long_line(self._where, number)
                if not whole and found.end() == len(text):
                    return
                taken = found.end()
                if taken - good > LONGEST_ROW:
                    raise csv.Error("a row larger than field limit")
                yield found[0]

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        began, width = self._lines + 1, len(self._header) if self._header is not None else None
        try:
            for number, row in enumerate(reader, self._rows + (width is not None)):
                width = len(row) if width is None else width
                if row and len(row) != width:
                    return good, DataError(
                        f"{self._where}: row {number} (line {began}) has {len(row)} fields, the header has {width}; "
                        "quote texts that contain the separator, and close every quote."
                    )
                good, began = taken, self._lines + reader.line_num + 1
        except DataError as error:
            return good, error
        except csv.Error as error:
            if "unexpected end of data" in str(error) and not whole:
                return good, None
            wrong = _wrong_quotes(str(error), began, self._lines + reader.line_num)
            return good, DataError(f"{self._where}: {wrong}")
        return good, None


def _wrong_quotes(error: str, began: int, line: int) -> str:
    """What is wrong with a row that began on a line."""
    if "unexpected end of data" in error or "larger than field limit" in error:
        wrong = f"a quote that is opened in the row of line {began} is not closed"
    elif began != line:
        wrong = f"{error} in the row that began on line {began}, where a quote may have been left open"
    else:
        wrong = f"{error} on line {began}"
    return f'{wrong}; close it, and write a quote inside a text as "".'


def _line_ends(text: str) -> int:
    return text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)


def _names(row: str, delimiter: str) -> list[str]:
    """What is in the first row of a table.

    Raises:
        ArrowInvalid: other rows are not as wide.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    return list(arrow_csv.read_csv(pa.BufferReader(row.encode("utf-8-sig")), parse_options=parse).column_names)


def _find_delimiter(text: str, usual: str, wanted: Sequence[str] | None) -> str:
    """What separates the columns: as usual, unless that makes one column of a header that another makes several of.

    Args:
        text: the beginning of the file.
        wanted: columns that are looked for; a separator that gives all of them is believed at once.
    """
    import pyarrow as pa

    def header(separator: str) -> list[str]:
        row = _row(separator).match(text)
        return [] if row is None or row[0] in BLANK else _names(row[0], separator)

    found = header(usual)
    if len(found) != 1 or (wanted and set(wanted) <= set(found)):
        return usual
    best, most = usual, 1
    for separator in SEPARATORS:
        names = header(separator)
        if len(names) < 2 or not all(name.strip() for name in names):
            continue
        if wanted and set(wanted) <= set(names):
            return separator
        rows = _rows(separator, LOOKED_AT).match(text)
        try:
            if rows and len(names) > most and _names(rows[0], separator):
                best, most = separator, len(names)
        except pa.ArrowInvalid:  # a row of another width
            continue
    return best
