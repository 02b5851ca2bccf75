"""How a file of text is written, found in its first bytes: the encoding that its mark says, and what separates its columns.

Nothing is guessed that could garble a text: without a mark a file is UTF-8, or its reader says otherwise. Columns are separated by
another character than the format's own only where the header would else be one column.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairtune.core.errors import DataError
from fairtune.settings.encodings import codec_of
from fairtune.tasks.reading.files import LONGEST, explain_errors, open_file

UTF8 = "utf-8-sig"
MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""What a file begins with that is not UTF-8."""
LOOKED_AT = 1 << 16
"""Bytes, and characters, of a file that are looked at."""
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MOST_ROWS = 50
"""Rows that have to be as wide as the header, before a separator is believed that nobody asked for."""


def find_encoding(file: Path, given: str | None = None) -> str:
    """What Python calls a file's encoding: as given, else by its mark, else UTF-8.

    Raises:
        DataError: it is UTF-16 without a mark, of which nobody can know that it is.
    """
    if given is not None:
        return codec_of(given)
    with explain_errors(file), open_file(file, "rb") as handle:
        start = handle.read(1024)
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    for name, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[0::2])):
        if len(start) >= 8 and zeros.count(0) > 0.7 * len(zeros) and start.count(0) == zeros.count(0):
            raise DataError(
                f"{file}: every other byte is zero, as in UTF-16 without a mark; say `encoding: {name}` in the task "
                f"(`--encoding {name}`), or save it as UTF-8."
            )
    return UTF8


def find_delimiter(lines: Iterable[str], usual: str, wanted: Sequence[str] | None = None) -> str:
    """What separates the columns of a table: as usual, unless that makes one column of a header that another makes several of.

    Args:
        lines: the first ones of the file, with their ends, none of them cut.
        wanted: columns that are looked for; a separator that gives all of them is believed at once.
    """
    rows = list(itertools.islice(lines, MOST_ROWS + 1))
    header = _parsed(rows, usual)[:1]
    if not header or len(header[0]) != 1 or (wanted and set(wanted) <= set(header[0])):
        return usual
    fitting = {}
    for separator in (one for one in SEPARATORS if one != usual):
        found = _parsed(rows, separator)
        names = [name.strip() for name in found[0]] if found else []
        if len(names) < 2 or not all(names):
            continue
        if wanted and set(wanted) <= set(found[0]):
            return separator
        if all(len(row) == len(names) for row in found[1:] if row):
            fitting[separator] = len(names)
    return max(fitting, key=lambda separator: fitting[separator]) if fitting else usual


def file_delimiter(file: Path, encoding: str, usual: str, wanted: Sequence[str] | None = None) -> str:
    """What separates the columns of a file."""
    with explain_errors(file), open_file(file, encoding=encoding) as handle:
        start = handle.read(LOOKED_AT)
        lines = io.StringIO(start, newline="").readlines()
        whole = len(start) < LOOKED_AT
    return find_delimiter(lines if whole else lines[:-1], usual, wanted)


def _parsed(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The rows as far as they can be read; the last may be cut within a quote."""
    csv.field_size_limit(LONGEST)
    found: list[list[str]] = []
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for row in reader:
            found.append(row)
    except csv.Error:
        return found
    cut = bool(found) and "".join(lines).count('"') % 2 == 1
    return found[:-1] if cut and len(found) > 1 else found


def separator_hint(header: Sequence[str]) -> str:
    """What to say where a table has one column whose name looks like several."""
    if len(header) != 1:
        return ""
    name = header[0]
    if name.lower().startswith("sep="):
        return " The first line is one that only spreadsheets know; remove it, so that the names of the columns come first."
    there = [word for separator, word in SEPARATORS.items() if separator in name]
    if not there:
        return ""
    return (
        f" The columns may be separated by {there[0]}, but not every row has as many of them as the header; quote texts that "
        "contain them."
    )
