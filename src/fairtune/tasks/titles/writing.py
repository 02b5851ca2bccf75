"""Made titles as a file, in the format its name says; the same titles give the same bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.core.files import write_atomically
from fairtune.tasks.titles.made_titles import MadeTitle
from fairtune.tasks.titles.reading import TABLES

COLUMNS = [field.name for field in fields(MadeTitle)]


def check_target(file: Path, overwrite: bool) -> None:
    """Refuse a place that cannot or must not be written, before any work is done.

    Raises:
        DataError: an unknown format, a folder that is not there, a file that is.
    """
    kind, packed = _format(file)
    if kind not in TABLES or (packed and kind == ".parquet"):
        allowed = one_of([*TABLES, *(f"{suffix}.gz" for suffix in TABLES if suffix != ".parquet")])
        raise DataError(f"{file}: unknown format '{kind or file.name}'; name the file with one of {allowed}.")
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}; make it first.")
    if file.is_dir():
        raise DataError(f"{file}: that is a folder; name a file.")
    if file.exists() and not overwrite:
        raise DataError(f"{file}: the file exists; choose another name, or add --force to replace it.")


def write_made(file: Path, made: Sequence[MadeTitle]) -> None:
    """Write the titles, whole or not at all."""
    kind, packed = _format(file)
    content = _parquet(made) if kind == ".parquet" else _text(made, kind).encode("utf-8", "surrogatepass")
    try:
        write_atomically(file, gzip.compress(content, mtime=0) if packed else content)
    except OSError as error:
        raise DataError(f"{file}: cannot be written: {error.strerror or error}.") from None


def _format(file: Path) -> tuple[str, bool]:
    packed = file.suffix.lower() == ".gz"
    return (file.with_suffix("") if packed else file).suffix.lower(), packed


def _text(made: Sequence[MadeTitle], kind: str) -> str:
    if kind == ".jsonl":
        return "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in made)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, delimiter="\t" if kind == ".tsv" else ",", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in made)
    return text.getvalue()


def _parquet(made: Sequence[MadeTitle]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    target = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist([asdict(row) for row in made]), target)
    return bytes(target.getvalue().to_pybytes())
