"""Titles in files: correct ones are read (BibTeX, tables with a column of titles, plain lines), made ones are written."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.files import write_atomically
from fairtune.tasks.reading.files import explain_errors, read_whole, suffix_of
from fairtune.tasks.reading.reader import RowReader
from fairtune.tasks.titles.bibtex import bibtex_fields
from fairtune.tasks.titles.made_titles import MadeTitle

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
LINES = (".txt",)
BIBTEX = (".bib", ".bibtex")
COLUMNS = [field.name for field in fields(MadeTitle)]


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
    if suffix in TABLES:
        return _column(file, column)
    if suffix in BIBTEX:
        return bibtex_fields(_file_text(file), column, str(file))
    if suffix in LINES:
        return _file_text(file).splitlines()
    allowed = one_of((*BIBTEX, *TABLES, *LINES))
    raise DataError(f"{file}: unknown format '{suffix or file.name}'; allowed: {allowed}, each also .gz.")


def _column(file: Path, column: str) -> Iterator[str | None]:
    if file.is_dir():
        raise DataError(f"{file}: that is a folder; name a file.")
    for some in RowReader(str(file), columns=[column]):
        for number, value in zip(some.numbers, some.values(column), strict=True):
            if not isinstance(value, str | None):
                raise DataError(f"{file}: row {number}: column '{column}' holds {str(value)[:60]}, not a title.")
            yield value


def _file_text(file: Path) -> str:
    """A file's text, with or without a byte order mark."""
    if not file.is_file():
        around = [str(path) for path in file.parent.glob("*")] if file.parent.is_dir() else []
        what = (
            "that is a folder; name a file." if file.is_dir() else f"there is no such file.{nearest(str(file), around)}"
        )
        raise DataError(f"{file}: {what}")
    with explain_errors(file):
        content = read_whole(file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file}: line {line} is not UTF-8 (byte 0x{content[error.start]:02x}); save it as UTF-8 "
            "(`iconv -f LATIN1 -t UTF-8`)."
        ) from None


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse a place that cannot or must not be written, before any work is done.

    Raises:
        DataError: an unknown format, a folder that is not there, a file that is.
    """
    suffix, packed = _format(file)
    if suffix not in TABLES or (packed and suffix == ".parquet"):
        allowed = one_of([*TABLES, *(f"{known}.gz" for known in TABLES if known != ".parquet")])
        raise DataError(f"{file}: unknown format '{suffix or file.name}'; name the file with one of {allowed}.")
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}; make it first.")
    if file.is_dir():
        raise DataError(f"{file}: that is a folder; name a file.")
    if file.exists() and not overwrite:
        raise DataError(f"{file}: the file exists; choose another name, or add --force to replace it.")


def write_made(file: Path, made: Sequence[MadeTitle]) -> None:
    """Write the titles, whole or not at all."""
    suffix, packed = _format(file)
    content = _parquet(made) if suffix == ".parquet" else _text(made, suffix).encode("utf-8", "surrogatepass")
    try:
        write_atomically(file, gzip.compress(content, mtime=0) if packed else content)
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror or error}.") from None


def _format(file: Path) -> tuple[str, bool]:
    packed = file.suffix.lower() == ".gz"
    return suffix_of(file), packed


def _text(made: Sequence[MadeTitle], suffix: str) -> str:
    if suffix == ".jsonl":
        return "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in made)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in made)
    return text.getvalue()


def _parquet(made: Sequence[MadeTitle]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    target = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist([asdict(row) for row in made]), target)
    return bytes(target.getvalue().to_pybytes())
