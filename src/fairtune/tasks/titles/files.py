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
from fairtune.tasks.reading.files import read_text, require_file, suffix_of
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.titles.bibtex import bibtex_fields
from fairtune.tasks.titles.made_titles import MadeTitle

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
WRITTEN = (*TABLES, ".csv.gz", ".tsv.gz", ".jsonl.gz")
BIBTEX, LINES = (".bib", ".bibtex"), ".txt"


def read_titles(files: Sequence[Path], column: str = "title") -> list[str]:
    """All the titles of some files, as they are written there.

    Raises:
        DataError: no such file, unknown format, not UTF-8, no such column, no titles.
    """
    found: list[str] = []
    for file in files:
        titles = [title for title in _read(file, column) if title and not title.isspace()]
        if not titles:
            raise DataError(f"{file}: there are no titles in it; it needs at least one, as its format has them.")
        found.extend(titles)
    return found


def _read(file: Path, column: str) -> Iterable[str | None]:
    suffix = suffix_of(file)
    if suffix not in (*TABLES, *BIBTEX, LINES):
        allowed = one_of((*BIBTEX, *TABLES, LINES))
        raise DataError(f"{file}: unknown format '{suffix or file.name}'; allowed: {allowed}, each also .gz.")
    require_file(file)
    if file.is_dir():
        raise DataError(f"{file}: that is a folder; name a file.")
    if suffix in TABLES:
        return _column(file, column)
    text = read_text(file)
    return text.splitlines() if suffix == LINES else bibtex_fields(text, column, str(file))


def _column(file: Path, column: str) -> Iterator[str | None]:
    for some in RowReader(str(file), columns=[column]):
        for number, value in zip(some.numbers, some.values(column), strict=True):
            if not isinstance(value, str | None):
                raise DataError(f"{file}: row {number}: column '{column}' holds {str(value)[:60]}, not a title.")
            yield value


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse a place that cannot or must not be written, before any work is done.

    Raises:
        DataError: an unknown format, a folder that is not there, a file that is.
    """
    if not file.name.lower().endswith(WRITTEN):
        raise DataError(
            f"{file}: unknown format '{suffix_of(file) or file.name}'; name the file with one of {one_of(WRITTEN)}."
        )
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}; make it first.")
    if file.is_dir() or (file.exists() and not overwrite):
        raise DataError(f"{file}: the file exists; choose another name, or add --force to replace it.")


def write_made(file: Path, made: Sequence[MadeTitle]) -> None:
    """Write the titles, whole or not at all."""
    rows, suffix = [asdict(row) for row in made], suffix_of(file)
    if suffix == ".parquet":
        content = _parquet(rows)
    elif suffix == ".jsonl":
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    else:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        content = text.getvalue().encode()
    try:
        write_atomically(file, gzip.compress(content, mtime=0) if file.suffix.lower() == ".gz" else content)
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror or error}.") from None


def _parquet(rows: list[dict[str, object]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    target = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(rows), target)
    return bytes(target.getvalue().to_pybytes())
