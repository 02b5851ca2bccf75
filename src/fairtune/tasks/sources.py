"""Where rows come from: files in CSV, TSV, JSONL or Parquet, plain or gzipped, also those inside an installed package."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from fairtune.errors import DataError, nearest, one_of

FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass(frozen=True)
class Rows:
    """Some columns of a file or a hub's data set, row by row.

    Args:
        file: where the rows are, for messages.
        numbers: the row's number in the file, from 1 after any header.
    """

    file: Path | str
    columns: dict[str, list[Any]]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, keep: Sequence[int]) -> Rows:
        picked = {name: [values[i] for i in keep] for name, values in self.columns.items()}
        return Rows(self.file, picked, [self.numbers[i] for i in keep])

    def where(self, column: str, value: str) -> Rows:
        return self.take([i for i, found in enumerate(self.columns[column]) if found == value])


def package_file(package: str, inside: str, distribution: str) -> Path:
    """A data file of an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(f"task '{distribution}': its package is not installed; run `pip install 'fairtune[demo]'`.")
    file = Path(next(iter(spec.submodule_search_locations))) / inside
    if not file.is_file():
        raise DataError(f"task '{distribution}': {inside} is missing from its package; reinstall `fairtune[demo]`.")
    return file


def read_rows(file: Path, columns: Sequence[str]) -> Rows:
    """Read the named columns of a file.

    Raises:
        DataError: no such file, unknown format, not UTF-8, a column that is not there, no rows.
    """
    kind = file.with_suffix("").suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    if kind not in FORMATS:
        raise DataError(f"{file}: unknown format '{kind or file.name}'; allowed: {one_of(FORMATS)}, each also .gz.")
    if not file.exists():
        around = [str(p) for p in file.parent.glob("*")] if file.parent.is_dir() else []
        raise DataError(f"{file}: there is no such file.{nearest(str(file), around)}")
    if file.is_dir():
        raise DataError(f"{file}: that is a folder; name a file.")
    try:
        if kind == ".parquet":
            rows = _read_parquet(file, columns)
        elif kind == ".jsonl":
            rows = _read_jsonl(file, columns)
        else:
            rows = _read_table(file, columns, "\t" if kind == ".tsv" else ",")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: {_not_utf8(file, error)}; save it as UTF-8 (`iconv -f LATIN1 -t UTF-8`).") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file}: the gzip file is damaged or cut off ({error}).") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}.") from None
    if not len(rows):
        raise DataError(f"{file}: the file has no rows.")
    return rows


def _open(file: Path, mode: str = "rt") -> IO[Any]:
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8-sig", "newline": ""}
    if file.suffix.lower() == ".gz":
        return cast(IO[Any], gzip.open(file, mode, **text))
    return file.open(mode.replace("t", ""), **text)


def _not_utf8(file: Path, error: UnicodeDecodeError) -> str:
    """Line and byte of the first byte that is not UTF-8; the decoder reads in chunks, so its own position is no use."""
    with _open(file, "rb") as handle:
        for number, line in enumerate(handle, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as here:
                return f"line {number} is not UTF-8 (byte 0x{line[here.start]:02x} at column {here.start + 1})"
    return f"not UTF-8 ({error.reason})"


def check_columns(where: object, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse data that lacks a column."""
    for column in wanted:
        if column not in found:
            raise DataError(f"{where}: no column '{column}'; columns: {one_of(found)}.{nearest(column, found)}")


def _read_table(file: Path, columns: Sequence[str], delimiter: str) -> Rows:
    values: dict[str, list[Any]] = {column: [] for column in columns}
    numbers = []
    with _open(file) as handle:
        reader = csv.reader(handle, delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise DataError(f"{file}: the file is empty.")
            check_columns(file, header, columns)
            places = {column: header.index(column) for column in columns}
            for number, row in enumerate(reader, start=1):
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        f"{file}: row {number} (line {reader.line_num}) has {len(row)} fields, the header has {len(header)}; "
                        "quote texts that contain the separator."
                    )
                for column, place in places.items():
                    values[column].append(row[place])
                numbers.append(number)
        except csv.Error as error:
            raise DataError(f"{file}: line {reader.line_num}: {error}.") from None
    return Rows(file, values, numbers)


def _read_jsonl(file: Path, columns: Sequence[str]) -> Rows:
    values: dict[str, list[Any]] = {column: [] for column in columns}
    numbers = []
    with _open(file) as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{file}: line {number} is not JSON: {error}.") from None
            if not isinstance(row, dict):
                raise DataError(f"{file}: line {number} is not a JSON mapping.")
            try:
                for column in columns:
                    values[column].append(row[column])
            except KeyError:
                check_columns(f"{file}: line {number}", list(row), columns)
            numbers.append(number)
    return Rows(file, values, numbers)


def _read_parquet(file: Path, columns: Sequence[str]) -> Rows:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with _open(file, "rb") as handle:
            table = parquet.ParquetFile(pa.BufferReader(handle.read()))
            check_columns(file, table.schema_arrow.names, columns)
            data = table.read(columns=list(columns)).to_pydict()
    except pa.ArrowInvalid as error:
        raise DataError(f"{file}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    return Rows(file, data, list(range(1, table.metadata.num_rows + 1)))
