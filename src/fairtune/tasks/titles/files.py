"""Titles in files: correct ones are read (BibTeX, tables with a column of titles, plain lines), made ones are written."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import write_atomically
from fairtune.tasks.reading.files import format_of, suffix_of
from fairtune.tasks.reading.reader import PLAIN_COLUMN, RowReader
from fairtune.tasks.titles.bibtex import bibtex_fields
from fairtune.tasks.titles.made_titles import MadeTitle

BIBTEX, TABLES = ("bib", "bibtex"), ("csv", "tsv", "jsonl", "parquet")
WRITTEN = (".csv", ".jsonl", ".jsonl.gz")


def read_titles(files: Sequence[Path], column: str = "title", encoding: str | None = None) -> list[str]:
    """All the titles of some files, as they are written there.

    Raises:
        DataError: no such file, unknown format, wrongly encoded, no such column, no titles.
    """
    found: list[str] = []
    for file in files:
        titles = [title for title in _read(file, column, encoding) if title and not title.isspace()]
        if not titles:
            raise DataError(f"{file}: there are no titles in it; it needs at least one, as its format has them.")
        found.extend(titles)
    return found


def _read(file: Path, column: str, encoding: str | None) -> Iterable[str | None]:
    kind = format_of(file, (*BIBTEX, *TABLES, "txt"))
    if kind in TABLES:
        return _column(RowReader(str(file), columns=[column], encoding=encoding), column)
    lines = _column(RowReader(str(file), "txt", columns=[PLAIN_COLUMN], encoding=encoding), PLAIN_COLUMN)
    return lines if kind == "txt" else bibtex_fields("\n".join(map(str, lines)), column, str(file))


def _column(rows: RowReader, column: str) -> Iterator[str | None]:
    for some in rows:
        for number, value in zip(some.numbers, some.values(column), strict=True):
            if not isinstance(value, str | None):
                raise DataError(f"{rows.where}: row {number}: column '{column}' holds {str(value)[:60]}, not a title.")
            yield value


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse a place that cannot or must not be written, before any work is done.

    Raises:
        DataError: an unknown format, a folder that is not there, a file that is.
    """
    if not file.name.endswith(WRITTEN):
        raise DataError(
            f"{file}: unknown format '{suffix_of(file) or file.name}'; name the file with one of {one_of(WRITTEN)}."
        )
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}; make it first.")
    if file.is_dir() or (file.exists() and not overwrite):
        raise DataError(f"{file}: the file exists; choose another name, or add --force to replace it.")


def write_made(file: Path, made: Sequence[MadeTitle]) -> None:
    """Write the titles, whole or not at all."""
    rows = [asdict(row) for row in made]
    if file.suffix == ".csv":
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        content = text.getvalue().encode()
    else:
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    try:
        write_atomically(file, gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror or error}.") from None
