"""Parquet files: read by one thread, a few rows at a time, so that a damaged file can neither hang nor fill the memory.

Whatever goes wrong with one is reported in a sentence: Arrow raises a different error for each of the many ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, Stopped
from fairtune.tasks.reading.files import read_whole

FEW = 256
"""Rows that Arrow makes at a time: a long text that a file holds once may stand in each of them."""
PLAIN = "texts (string), numbers, or true and false"


def parquet_batches(file: Path, source: Any, choose: Callable[[Any], Sequence[str] | None]) -> Iterator[Any]:
    """Arrow's record batches, a few rows each.

    Args:
        source: the file, or its content where it was packed, as Arrow reads from it.
        choose: looks at the schema, refuses it or says which columns to read; None for all.

    Raises:
        DataError: it is no Parquet file, or a damaged one.
    """
    from pyarrow import parquet

    try:
        with source, parquet.ParquetFile(source) as table:
            _require_sound(file, table.metadata)
            columns = choose(table.schema_arrow)
            chosen = None if columns is None else list(columns)
            yield from table.iter_batches(batch_size=FEW, columns=chosen, use_threads=False)
    except (DataError, Stopped):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # the disk, not the file
            raise
        raise DataError(f"{file}: not a readable Parquet file: {_reason(error)}") from None


def require_plain(where: object, schema: Any, columns: Sequence[str]) -> None:
    """Refuse columns whose values are not single ones: lists, mappings and the like.

    Raises:
        DataError: names the column and its type.
    """
    for column in columns:
        type_ = schema.field(column).type
        if not _is_plain(type_):
            raise DataError(
                f"{where}: column '{column}' has the Parquet type {_short(type_)}, which is not one value; write it as {PLAIN}."
            )


def plain_values(where: object, batch: Any, column: str) -> list[Any]:
    """A column's values as texts and numbers; bytes are texts in UTF-8, as writers without a type for texts mean them.

    Raises:
        DataError: names the column and its type.
    """
    import pyarrow as pa

    found = batch.column(column)
    with _explain_errors(where, column, found.type):
        if pa.types.is_dictionary(found.type):
            found = found.dictionary_decode()
        if _is_bytes(found.type):
            found = found.cast(pa.large_binary()).cast(pa.large_string())
        elif pa.types.is_float16(found.type):
            found = found.cast(pa.float32())
        return list(found.to_pylist())


def plain_column(where: object, batches: Sequence[Any], column: str) -> Any:
    """A column of some record batches: texts and whole numbers as one Arrow array, all else as a list of values.

    Raises:
        DataError: names the column and its type.
    """
    import pyarrow as pa

    found = [batch.column(column) for batch in batches]
    plain = {pa.string(): pa.large_string(), pa.large_string(): pa.large_string(), pa.int64(): pa.int64()}
    if (type_ := plain.get(found[0].type)) is not None:
        whole = pa.concat_arrays([one.cast(type_) for one in found])
        with suppress(pa.ArrowInvalid):  # not UTF-8, which is told below
            whole.validate(full=True)
            return whole
    return [value for batch in batches for value in plain_values(where, batch, column)]


def python_values(where: object, batch: Any, column: str) -> list[Any]:
    """A column's values as Python has them, of whatever type.

    Raises:
        DataError: names the column and its type.
    """
    found = batch.column(column)
    with _explain_errors(where, column, found.type):
        return list(found.to_pylist())


@contextmanager
def _explain_errors(where: object, column: str, type_: Any) -> Iterator[None]:
    try:
        yield
    except (
        Exception
    ) as error:  # a zone that is unknown, a date beyond Python's, bytes that are not UTF-8: each raises its own error
        raise DataError(
            f"{where}: column '{column}' has values of the Parquet type {_short(type_)} that cannot be read ({_reason(error)}); "
            f"write it as {PLAIN}, or leave it out."
        ) from None


def joined(batches: Sequence[Any]) -> Sequence[Any]:
    """Record batches as one, where Arrow can make one of their types."""
    import pyarrow as pa

    try:
        return pa.Table.from_batches(batches).combine_chunks().to_batches() if len(batches) > 1 else batches
    except pa.ArrowException:
        return batches


def _require_sound(file: Path, facts: Any) -> None:
    """Refuse a file that says different things of how many rows it has, before so many are waited for.

    What it says of single columns is not looked at: in a damaged file, Arrow ends the process over that.
    """
    if not facts.num_columns:
        raise DataError(f"{file}: the Parquet file has no columns.")
    rows = [facts.row_group(place).num_rows for place in range(facts.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != facts.num_rows:
        raise DataError(f"{file}: not a readable Parquet file: it does not have as many rows as it says.")


def _is_plain(type_: Any) -> bool:
    from pyarrow import BaseExtensionType, types

    if isinstance(type_, BaseExtensionType):
        return _is_plain(type_.storage_type)
    if types.is_dictionary(type_):
        return _is_plain(type_.value_type)
    return bool(types.is_primitive(type_) or types.is_null(type_) or types.is_decimal(type_) or _is_text(type_))


def _is_text(type_: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_) or _is_bytes(type_)
    )


def _is_bytes(type_: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_binary_view(type_)
        or types.is_fixed_size_binary(type_)
    )


def _short(type_: Any) -> str:
    name = " ".join(str(type_).split())
    return name if len(name) <= 60 else f"{name[:57]}..."


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]


def parquet_source(file: Path) -> Any:
    """A Parquet file as Arrow reads from it; not mapped, since a file that is cut meanwhile would end the process."""
    import pyarrow as pa

    return pa.BufferReader(read_whole(file)) if file.suffix.lower() == ".gz" else pa.OSFile(str(file))
