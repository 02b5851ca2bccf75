"""The hashes of rows, of an Arrow batch at a time: by which one is held out, and by which its texts are found again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.helper_process import map_batches, serve
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, Hashes, hash_columns, unit_hashes

EXACT, NORMAL, PLACE = "exact\0", "normal\0", "place\0"
"""What the columns of hashes are called beside those of a file, of which none is called so."""
FEW_ROWS = 20_000
"""Rows that are hashed before another process would have started."""
ASCII_SPACES = "".join(chr(code) for code in range(128) if chr(code).isspace())
"""What Python takes for spaces around a text; Arrow has a list of its own."""


def example_hashes(columns: Sequence[Any]) -> tuple[Hashes, Hashes]:
    """Of each row as it is, and in its normal form; nothing counts as an empty text.

    Args:
        columns: Arrow's arrays of the one or two texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = [pc.fill_null(column, "") if column.null_count else column for column in columns]
    return hash_columns([pc.cast(column, pa.large_binary()).to_pylist() for column in filled])


def place_hashes(columns: Sequence[Any]) -> npt.NDArray[np.float64]:
    """Of each row a number in [0, 1): the same for texts that differ in nothing but case and the spaces around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    alike = []
    for column in columns:
        lowered = pc.ascii_lower(pc.utf8_trim(column, ASCII_SPACES)).cast(pa.large_binary()).to_pylist()
        other = pc.invert(pc.fill_null(pc.string_is_ascii(column), False)).to_numpy(zero_copy_only=False)
        for place in np.flatnonzero(other).tolist():
            lowered[place] = str(column[place].as_py()).strip().lower().encode()
        alike.append(lowered)
    separator = PAIR_SEPARATOR.encode()
    return unit_hashes(alike[0] if len(alike) == 1 else [separator.join(texts) for texts in zip(*alike, strict=True)])


def with_hashes(batches: Iterable[Any], texts: Sequence[str], placed: bool) -> Iterator[Any]:
    """Record batches with columns of their hashes, made by as many processes as there are cores.

    Args:
        texts: the columns that make an example.
        placed: whether also what decides which rows are held out is asked for.
    """
    import pyarrow as pa

    settings = {"texts": list(texts), "placed": placed}
    waiting: deque[Any] = deque()

    def examples() -> Iterator[Any]:
        for batch in batches:
            waiting.append(batch)
            yield batch.select(settings["texts"])

    for hashes in map_batches(examples(), _hashing(settings), __name__, settings, FEW_ROWS):
        batch = waiting.popleft()
        fields = dict(zip(batch.schema.names, batch.columns, strict=True))
        fields |= dict(zip(hashes.schema.names, hashes.columns, strict=True))
        yield pa.record_batch(fields)


def _hashing(settings: dict[str, Any]) -> Callable[[Any], Any]:
    def work(batch: Any) -> Any:
        import pyarrow as pa

        columns = [batch.column(text) for text in settings["texts"]]
        fields = dict(zip((EXACT, NORMAL), map(pa.array, example_hashes(columns)), strict=True))
        if settings["placed"]:
            fields[PLACE] = pa.array(place_hashes(columns))
        return pa.record_batch(fields)

    return work


if __name__ == "__main__":
    serve(_hashing)
