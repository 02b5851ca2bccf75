"""The rows of each format that is text, one after the other, with their numbers: CSV, TSV, JSONL and plain text.

Parquet is read by columns, see `parquet.py`. What one row of plain text is, a line or a paragraph, its reader says: texts to be
classified stand one per line, as users pipe them; documents for a language model are paragraphs, with blank lines between them.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import parse_json
from fairtune.tasks.reading.files import LONGEST
from fairtune.tasks.reading.text_form import separator_hint

FORMATS = ("csv", "tsv", "jsonl", "parquet", "txt")
DELIMITERS = {"csv": ",", "tsv": "\t"}
TextRow = Literal["line", "paragraph"]
"""What one row of plain text is."""
LONGEST_ROW = 4 * LONGEST
"""Characters in a row of a table, which may go over many lines."""
DEEPEST = 100
"""Lists and mappings within each other in a line of JSON: Python itself writes, shows and compares some hundreds at most."""
COLUMNS_SHOWN, COLUMN_SHOWN, COLUMNS_COMPARED = 50, 60, 1000
PLAIN_COLUMN = "text"
"""What the one column of a plain text file is called."""


def suffixes() -> list[str]:
    """How the names of files end that can be read."""
    return [f".{known}" for known in FORMATS]


def format_of(file: Path) -> str:
    """The format that a file's name ends in, without any .gz.

    Raises:
        DataError: it is none of those that are known.
    """
    suffix = suffix_of(file)
    if suffix not in suffixes():
        raise DataError(
            f"{file}: unknown format '{suffix or file.name}'; allowed: {one_of(suffixes())}, each also .gz."
        )
    return suffix.removeprefix(".")


def suffix_of(file: Path) -> str:
    """The ending of a file's name in lower case, without any .gz."""
    return (file.with_suffix("") if file.suffix.lower() == ".gz" else file).suffix.lower()


class NoColumnError(DataError):
    """A file lacks a column: from its first row on, or in a later one only."""

    from_start = True


def check_columns(where: object, found: Sequence[str], wanted: Sequence[str], from_start: bool = True) -> None:
    """Refuse data that lacks a column."""
    for column in wanted:
        if column not in found:
            names = one_of(name[:COLUMN_SHOWN] for name in found[:COLUMNS_SHOWN])
            more = f" and {len(found) - COLUMNS_SHOWN:,} more" if len(found) > COLUMNS_SHOWN else ""
            near = nearest(column, found[:COLUMNS_COMPARED])
            hint = near or separator_hint(found)
            error = NoColumnError(f"{where}: no column '{column}'; columns: {names}{more}.{hint}")
            error.from_start = from_start
            raise error


def choose_columns(
    where: object, found: Sequence[str], wanted: Sequence[str] | None, take_first: bool = False
) -> Sequence[str]:
    """The columns to read, of those that were found: the wanted ones, or all.

    Args:
        take_first: whether of a wanted column that is there twice the first is taken, as tasks always did in CSV and TSV.

    Raises:
        DataError: one is not there, or more than once.
    """
    chosen = found
    if wanted is not None:
        check_columns(where, found, wanted)
        chosen = wanted if take_first else [name for name in found if name in wanted]
    twice = [name for name, times in Counter(chosen).items() if times > 1]
    if twice:
        raise DataError(f"{where}: column '{twice[0]}' is there more than once; give each column a name of its own.")
    return found if wanted is None else wanted


class TextTable:
    """The rows of CSV or TSV, which may go over several lines.

    Args:
        where: the file, for messages.
        header: the names of the columns, where it was read before.
        before: the rows and the lines that were read before.

    Attributes:
        header: the names of the columns.

    Raises:
        DataError: there is nothing at all, or a quote in the header is not closed.
    """

    def __init__(
        self,
        where: Path | str,
        lines: Iterator[str],
        delimiter: str,
        header: list[str] | None = None,
        before: tuple[int, int] = (0, 0),
    ) -> None:
        csv.field_size_limit(LONGEST)
        self._where, self._lines, self._began = where, _RowLines(lines), 1
        self._rows_before, self._lines_before = before
        self._reader = csv.reader(self._lines, delimiter=delimiter, strict=True)
        if header is not None:
            self.header = header
            return
        with self._explain_errors():
            header = next(self._reader, None)
        if header is None:
            raise DataError(f"{where}: the file is empty, with no header and no rows.")
        self.header = header

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with its number, which counts blank lines too; those are left out.

        Raises:
            DataError: a quote that is not closed, or a row that has not as many fields as the header.
        """
        width = len(self.header)
        self._began = self._line + 1
        with self._explain_errors():
            for number, row in enumerate(self._reader, start=self._rows_before + 1):
                self._lines.size = 0
                if row:
                    if len(row) != width:
                        raise DataError(
                            f"{self._where}: row {number} (line {self._began}) has {len(row)} fields, the header has {width}; "
                            "quote texts that contain the separator, and close every quote."
                        )
                    yield number, row
                self._began = self._line + 1

    @property
    def _line(self) -> int:
        return self._lines_before + int(self._reader.line_num)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            wrong = _wrong_quotes(str(error), self._began, self._line)
            raise DataError(f"{self._where}: {wrong}") from None


class _RowLines:
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


def _wrong_quotes(error: str, began: int, line: int) -> str:
    """What is wrong with a row that began on a line."""
    if "unexpected end of data" in error or "larger than field limit" in error:
        wrong = f"a quote that is opened in the row of line {began} is not closed"
    elif began != line:
        wrong = f"{error} in the row that began on line {began}, where a quote may have been left open"
    else:
        wrong = f"{error} on line {began}"
    return f'{wrong}; close it, and write a quote inside a text as "".'


def json_rows(where: Path | str, lines: Iterator[str], before: int = 0) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Each mapping with its line's number and size; blank lines are left out.

    Args:
        before: the lines that were read before.

    Raises:
        DataError: a line that is no JSON, or no mapping.
    """
    for number, line in enumerate(lines, start=before + 1):
        if line.strip():
            yield number, len(line), _json_row(where, number, line)


def _json_row(where: Path | str, number: int, line: str) -> dict[str, Any]:
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


def text_rows(lines: Iterator[str], row: TextRow) -> Iterator[tuple[int, int, str]]:
    """Each text of plain text with the number of its first line and its size."""
    return _lines(lines) if row == "line" else _paragraphs(lines)


def _lines(lines: Iterator[str]) -> Iterator[tuple[int, int, str]]:
    """A blank line is an empty text, so that answers stand beside their lines."""
    for number, line in enumerate(lines, start=1):
        yield number, len(line), line.rstrip("\r\n")


def _paragraphs(lines: Iterator[str]) -> Iterator[tuple[int, int, str]]:
    """The lines between blank ones. A very long paragraph is cut at the end of a line."""
    found: list[str] = []
    size = began = 0
    for number, line in enumerate(lines, start=1):
        text = line.replace("\r\n", "\n")
        if found and (not text.strip() or size + len(text) > LONGEST):
            yield began, size, "".join(found).rstrip()
            found, size = [], 0
        if text.strip():
            began = began if found else number
            found.append(text)
            size += len(text)
    if found:
        yield began, size, "".join(found).rstrip()
