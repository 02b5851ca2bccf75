"""Parquet files: read by one thread, a few rows at a time, so that a damaged file can neither hang nor fill the memory.

Whatever goes wrong with one is reported in a sentence: Arrow raises a different error for each of the many ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, Stopped
from fairtune.tasks.reading.columns import choose_columns
from fairtune.tasks.reading.files import open_file

FEW = 256
"""Rows that Arrow makes at a time: a long text that a file holds once may stand in each of them."""
MOST_ROWS, MOST_BYTES = 4096, 4 << 20
"""Rows that are given at a time."""
PLAIN = "texts (string), numbers, or true and false"


def parquet_tables(file: Path, columns: Sequence[str] | None) -> Iterator[tuple[Sequence[int], Any]]:
    """Some rows at a time: their numbers, and an Arrow table.

    Args:
        columns: to read; None for all.
    """
    import pyarrow as pa
    from pyarrow import parquet

    # not mapped into memory, since a file that is cut meanwhile would end the process
    with open_file(file) as handle:
        source = pa.BufferReader(handle.read()) if file.suffix.lower() == ".gz" else pa.OSFile(str(file))
    done = 0
    try:
        with source, parquet.ParquetFile(source) as found:
            choose_columns(file, found.schema_arrow.names, columns)
            waiting: list[Any] = []
            few = found.iter_batches(FEW, columns=None if columns is None else list(columns), use_threads=False)
            for batch in chain(few, [None]):
                waiting += [batch] if batch else []
                rows, size = sum(map(len, waiting)), sum(one.nbytes for one in waiting)
                if rows >= MOST_ROWS or size >= MOST_BYTES or (rows and batch is None):
                    yield range(done + 1, done + 1 + rows), pa.Table.from_batches(waiting)
                    done, waiting = done + rows, []
    except (DataError, Stopped):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # the disk, not the file
            raise
        raise DataError(f"{file}: not a readable Parquet file: {_reason(error)}") from None


def plain_column(where: object, table: Any, column: str) -> Any:
    """A column of single values: texts in Arrow's largest type, numbers as they are."""
    import pyarrow as pa
    from pyarrow import types

    found = table.column(column)
    kind = found.type.storage_type if isinstance(found.type, pa.BaseExtensionType) else found.type
    if types.is_nested(kind.value_type if types.is_dictionary(kind) else kind):
        raise DataError(
            f"{where}: column '{column}' has the Parquet type {_short(found.type)}, which is not one value; write it as {PLAIN}."
        )
    with _explain_errors(where, column, found.type):
        if types.is_dictionary(found.type):
            found = pa.chunked_array([chunk.dictionary_decode() for chunk in found.chunks])
        if "binary" in str(found.type):
            found = found.cast(pa.large_binary()).cast(pa.large_string())
        elif "string" in str(found.type):
            found = found.cast(pa.large_string())
        elif types.is_float16(found.type):
            found = found.cast(pa.float32())
        found.validate(full=True)
    return found


def python_values(where: object, column: str, found: Any) -> list[Any]:
    """A column's values as Python has them, of whatever type."""
    with _explain_errors(where, column, found.type):
        return list(found.to_pylist())


@contextmanager
def _explain_errors(where: object, column: str, kind: Any) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # an unknown zone, a date beyond Python's, bytes that are not UTF-8: each its own error
        raise DataError(
            f"{where}: column '{column}' has values of the Parquet type {_short(kind)} that cannot be read ({_reason(error)}); "
            f"write it as {PLAIN}, or leave it out."
        ) from None


def _short(kind: Any) -> str:
    name = " ".join(str(kind).split())
    return name if len(name) <= 60 else f"{name[:57]}..."


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
