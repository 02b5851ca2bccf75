"""Where rows go: a file that has its name only when it is whole, or standard output."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Protocol

from fairtune.core.errors import DataError
from fairtune.core.files import aside_of, finite
from fairtune.core.printable import LINES, printable, printable_json
from fairtune.tasks.reading.files import DELIMITERS, format_of
from fairtune.tasks.reading.reader import RowBatch

Columns = Mapping[str, Sequence[Any]]
NAMES = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSONL", "parquet": "Parquet"}
WRITTEN = tuple(NAMES)
QUOTE = "'"
FORMULA = re.compile(r"'*(?:[\t\r\n\0]|[\s\ufeff]*[=+\-@＝＋－＠])")
"""How a cell begins that a spreadsheet would take for a formula. Quotes before it count, so that taking one away again
gives the data back, whatever they were."""


class RowWriter(Protocol):
    """How rows are written in a format."""

    def write(self, chunk: RowBatch, added: Columns) -> None:
        """Some rows, with columns added to them."""

    def close(self) -> None:
        """Make a whole file of what was written."""


class RowOutput:
    """An output. In a `with` it is finished when all went well, and kept aside as far as it came when something did not.

    Args:
        target: a file, or `-` for standard output.
        like: the input's format, which standard output takes over where it can.
        safe: whether cells are guarded that a spreadsheet would take for formulas; in CSV and TSV only.
        kept: after the `with`, where the rows are.

    Raises:
        DataError: an unknown format, or one in which there is nothing to guard.
    """

    def __init__(self, target: str, like: str, safe: bool = False) -> None:
        self.file = None if target == "-" else Path(target)
        self.format = (
            like if self.file is None else format_of(self.file, WRITTEN, " Or write to standard output with `-o -`.")
        )
        if self.file is None and like not in ("csv", "tsv"):
            self.format = "jsonl"
        if safe and self.format not in DELIMITERS:
            where = "standard output" if self.file is None else str(self.file)
            raise DataError(
                f"--safe-csv guards cells of CSV and TSV, and {where} would be {NAMES[self.format]}; write a .csv or .tsv file "
                "with -o FILE, or leave --safe-csv out."
            )
        self._safe, self._to_terminal = safe, self.file is None and sys.stdout.isatty()
        self.rows, self.kept = 0, self.file
        self._writer: RowWriter | None = None

    def __enter__(self) -> RowOutput:
        if self.file is not None:
            if self.file.is_dir():
                raise DataError(
                    f"{self.file}: that is a folder; name a file in it, such as {self.file / 'answers.csv'}."
                )
            self._aside = aside_of(self.file)
            try:
                handle: Any = self._aside.open("wb")
            except OSError as error:
                raise DataError(f"{self.file}: cannot be written: {error.strerror or error}.") from None
            if self.file.suffix.lower() == ".gz":
                handle = _GzipFile(handle)
        else:
            handle = sys.stdout.buffer
        self._handle = handle
        parquet = self.format == "parquet"
        self._writer = (
            _ParquetWriter(handle) if parquet else _TextWriter(handle, self.format, self._safe, self._to_terminal)
        )
        return self

    def write(self, chunk: RowBatch, added: Columns) -> None:
        """Add rows.

        Raises:
            DataError: they do not fit those before, or the disk is full.
        """
        assert self._writer is not None
        try:
            with uninterrupted():
                self._writer.write(chunk, added)
                self.rows += len(chunk)
        except BrokenPipeError:
            raise
        except RecursionError:
            raise DataError(f"{chunk.where}: a row is nested too deeply to be written; flatten or remove it.") from None
        except OSError as error:
            raise DataError(
                f"{self.file or 'standard output'}: cannot be written: {error.strerror or error}."
            ) from None

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._writer is not None
        if self.file is None:
            if error_type is not BrokenPipeError:
                self._writer.close()
            return
        try:
            self._writer.close()
            self._handle.close()
        except OSError:  # a full disk; what is aside cannot be read
            self.kept = None
            self._aside.unlink(missing_ok=True)
            if error is None:
                raise
            return
        if error_type is None:
            self._aside.replace(self.file)
        elif self.rows:
            self.kept = partial_name(self.file)
            self._aside.replace(self.kept)
        else:
            self.kept = None
            self._aside.unlink()


def partial_name(file: Path) -> Path:
    """Where the rows are that were done when something came between: `out.partial.csv.gz` of `out.csv.gz`."""
    endings = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])
    return file.with_name(f"{file.name.removesuffix(endings)}.partial{endings}")


class _GzipFile(gzip.GzipFile):
    """gzip that closes the file beneath, and writes the same bytes for the same rows."""

    def __init__(self, handle: IO[bytes]) -> None:
        super().__init__(filename="", mode="wb", fileobj=handle, mtime=0)
        self._beneath = handle

    def close(self) -> None:
        super().close()
        self._beneath.close()


class _TextWriter:
    """CSV, TSV and JSONL; some rows are written in one go.

    Args:
        safe: whether cells are guarded that a spreadsheet would take for formulas.
        to_terminal: whether a terminal gets them, which must not obey what is in a text; a file or a pipe gets the data as is.
    """

    def __init__(self, handle: IO[bytes], format: str, safe: bool = False, to_terminal: bool = False) -> None:
        self._handle, self._format = handle, format
        self._safe, self._to_terminal = safe, to_terminal
        self._columns: list[str] | None = None

    def write(self, chunk: RowBatch, added: Columns) -> None:
        text = io.StringIO(newline="")
        if self._format == "jsonl":
            for row in _whole(chunk, added):
                text.write(json.dumps(finite(row), ensure_ascii=False, default=_as_json) + "\n")
        else:
            self._table(text, chunk, added)
        self._handle.write(self._for_terminal(text.getvalue()).encode("utf-8", "backslashreplace"))
        self._handle.flush()

    def _for_terminal(self, text: str) -> str:
        if not self._to_terminal:
            return text
        return printable_json(text) if self._format == "jsonl" else printable(text, LINES)

    def _table(self, text: io.StringIO, chunk: RowBatch, added: Columns) -> None:
        writer = csv.writer(text, delimiter=DELIMITERS[self._format], lineterminator="\n")
        if self._columns is None:
            self._columns = [*chunk.columns, *added]
            writer.writerow(map(self._cell, self._columns))
        known = set(self._columns)
        for number, row in zip(chunk.numbers, _whole(chunk, added), strict=True):
            if not known.issuperset(row):
                new = next(column for column in row if column not in known)
                raise DataError(
                    f"{chunk.where}: row {number} has a column '{new}' that no row of the first ones has, so there is no place "
                    f"for it in {self._format.upper()}; write JSONL, where each row has its own."
                )
            writer.writerow([self._cell(row.get(column)) for column in self._columns])

    def _cell(self, value: Any) -> Any:
        cell = _as_cell(value)
        return guard(cell) if self._safe else cell

    def close(self) -> None:
        self._handle.flush()


class _ParquetWriter:
    """Parquet; the first rows decide the types."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle
        self._writer: Any = None
        self._schema: Any = None

    def write(self, chunk: RowBatch, added: Columns) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            own = chunk.table if chunk.table is not None else self._table(chunk, added)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(
                f"{chunk.where}: rows {chunk.numbers[0]} to {chunk.numbers[-1]} do not fit into one Parquet table with those "
                f"before ({str(error).splitlines()[0]}); write JSONL, where values may be of any type."
            ) from None
        for name, values in added.items():
            own = own.append_column(name, pa.array(values))
        if self._writer is None:
            self._schema = own.schema
            self._writer = parquet.ParquetWriter(self._handle, self._schema)
        self._writer.write_table(own)

    def _table(self, chunk: RowBatch, added: Columns) -> Any:
        """Rows of another format as Arrow has them; a column with nothing in the first rows is taken for texts."""
        import pyarrow as pa

        if self._schema is not None:
            known = pa.schema([field for field in self._schema if field.name not in added])
            self._refuse_new(chunk, known.names)
            return pa.Table.from_pylist(chunk.rows, schema=known)
        names = chunk.columns
        found = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in chunk.rows])
        return found.cast(
            pa.schema(
                [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in found.schema]
            )
        )

    def _refuse_new(self, chunk: RowBatch, known: Sequence[str]) -> None:
        new = [column for column in chunk.columns if column not in known]
        if new:
            raise ValueError(f"column '{new[0]}' is new")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _whole(chunk: RowBatch, added: Columns) -> list[dict[str, Any]]:
    values = zip(*added.values(), strict=True)
    return [{**row, **dict(zip(added, own, strict=True))} for row, own in zip(chunk.rows, values, strict=True)]


def _as_json(value: Any) -> Any:
    """What JSON has no word for."""
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def _as_cell(value: Any) -> Any:
    """A value in a table: lists and mappings as JSON, nothing as an empty field."""
    if isinstance(value, list | dict):
        return json.dumps(finite(value), ensure_ascii=False, default=_as_json)
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until this is over, so that no row is written by half."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signals: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: signals.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if signals:
            before(*signals[0])


def quiet_standard_output() -> None:
    """After a broken pipe: what is left in the buffer goes nowhere, so that Python says nothing of it at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def guard(cell: Any) -> Any:
    """The cell with a quote before it, which makes spreadsheets take it for text; numbers, and other texts, as they are."""
    return QUOTE + cell if isinstance(cell, str) and FORMULA.match(cell) else cell
