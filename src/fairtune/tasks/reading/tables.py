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
def _rows(delimiter: str, most: str = "") -> re.Pattern[str]:
    """So many whole rows with their line ends; possessive, so that rows are found in one pass or not at all."""
    mark = re.escape(delimiter)
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"|[^"{mark}\r\n][^{mark}\r\n]*+)?+'
    return re.compile(rf"(?:{field}(?:{mark}{field})*+(?:\r\n|\n|\r(?!\Z))){{{most}}}+")


class DelimitedTable:
    """The rows of CSV or TSV.

    Args:
        where: the file, for messages.
        blocks: its text.
        usual: what separates the columns of its format.
        columns: to read; None for all.

    Attributes:
        delimiter: what separates the columns.
    """

    def __init__(self, where: Path | str, blocks: Iterator[str], usual: str, columns: Sequence[str] | None) -> None:
        csv.field_size_limit(1 << 30)  # a row is limited here
        self._where, self._blocks = where, blocks
        text, self._ended = head_of(blocks, lines=2)
        text = self._closed(text)
        self.delimiter = _find_delimiter(text, usual, columns)
        self._rows = self._lines = 0
        self._header: list[str] = []
        header = _rows(self.delimiter, "1").match(text)
        if not text:
            raise DataError(f"{where}: the file is empty, with no header and no rows.")
        if header is None:
            raise self._fault(text)[1]
        if header[0] in BLANK:
            raise DataError(f"{where}: line 1 is blank; it must name the columns.")
        self._header = _cells(header[0], self.delimiter)[0]
        self._chosen = choose_columns(where, self._header, columns)
        self._lines, self._text = _line_ends(header[0]), text[header.end() :]

    def __iter__(self) -> Iterator[tuple[Sequence[int], Any]]:
        """Some rows at a time: their numbers, which count blank lines too, and an Arrow table."""
        text = self._text
        while True:
            found = _rows(self.delimiter, "0,").match(text) if '"' in text else None
            end = found.end() if found else last_line_end(text)
            yield from self._read(text[:end])
            text = text[end:]
            if len(text) > (LONGEST_ROW if '"' in text else LONGEST) or (self._ended and text):
                raise self._fault(text)[1]
            if self._ended:
                return
            block = next(self._blocks, None)
            self._ended = block is None
            text = self._closed(text + (block or ""))

    def _closed(self, text: str) -> str:
        """The text, at the end of the file with the line end that may be left out there."""
        return text + "\n" if self._ended and text[-1:] not in ("", "\n") else text

    def _read(self, text: str) -> Iterator[tuple[Sequence[int], Any]]:
        import pyarrow as pa

        if not text:
            return
        try:
            table = self._table(text)
        except pa.ArrowInvalid as invalid:
            good, error = self._fault(text, str(invalid))
            yield from self._read(text[:good])
            raise error from None
        numbers: Sequence[int] = range(self._rows + 1, self._rows + 1 + table.num_rows)
        ends = _line_ends(text)
        if ends > table.num_rows:  # blank lines, or texts that go over several
            rows = [found[0] for found in _rows(self.delimiter, "1").finditer(text)]
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

        places = [str(self._header.index(column)) for column in self._chosen]
        content = text.encode("utf-8-sig" if text[0] == "\ufeff" else "utf-8")  # Arrow takes one mark away
        return arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=list(map(str, range(len(self._header))))
            ),
            arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(places, pa.large_string()), include_columns=places),
        ).rename_columns(list(self._chosen))

    def _fault(self, text: str, otherwise: str = "a row is too long.") -> tuple[int, DataError]:
        """Where the first row begins that is wrong, and what is wrong with it.

        Args:
            text: rows, of which the last may not be whole.
            otherwise: what is wrong where every row could be read.
        """
        lines, began, wrong = LINE.findall(text), 0, otherwise
        if len(lines[0]) > LONGEST:
            return 0, long_line(self._where, self._lines + 1)
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            for number, row in enumerate(reader, self._rows + 1):
                if row and self._header and len(row) != len(self._header):
                    wrong = (
                        f"row {number} (line {self._lines + began + 1}) has {len(row)} fields, the header has "
                        f"{len(self._header)}; quote texts that contain the separator, and close every quote."
                    )
                    break
                began = reader.line_num
        except csv.Error as error:
            wrong = _wrong_quotes(str(error), self._lines + began + 1, self._lines + reader.line_num)
        return sum(map(len, lines[:began])), DataError(f"{self._where}: {wrong}")


def _wrong_quotes(error: str, began: int, line: int) -> str:
    """What is wrong with a row that began on a line."""
    if "unexpected end of data" in error:
        wrong = f"a quote that is opened in the row of line {began} is not closed"
    elif began != line:
        wrong = f"{error} in the row that began on line {began}, where a quote may have been left open"
    else:
        wrong = f"{error} on line {began}"
    return f'{wrong}; close it, and write a quote inside a text as "".'


def _line_ends(text: str) -> int:
    return text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)


def _cells(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(LINE.findall(text), delimiter=delimiter))


def _find_delimiter(text: str, usual: str, wanted: Sequence[str] | None) -> str:
    """What separates the columns: as usual, unless that makes one column of a header that another makes several of.

    Args:
        text: the beginning of the file.
        wanted: columns that are looked for; a separator that gives all of them is believed at once.
    """
    heads = {}
    for separator in SEPARATORS:
        found = _rows(separator, f"0,{LOOKED_AT}").match(text)
        heads[separator] = _cells(found[0], separator) if found else []
    if len((heads[usual] or [[]])[0]) != 1:
        return usual
    named = {separator: rows for separator, rows in heads.items() if rows and all(map(str.strip, rows[0]))}
    for separator in (usual, *named):
        if wanted and set(wanted) <= set(heads[separator][0]):
            return separator
    widths = {separator: len(rows[0]) for separator, rows in named.items() if len({*map(len, filter(None, rows))}) == 1}
    return max([usual, *widths], key=lambda separator: widths.get(separator, 1))
