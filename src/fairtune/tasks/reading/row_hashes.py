"""The hashes of rows, of an Arrow batch at a time: by which one is held out, and by which its texts are found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.tasks.text_hashes import PAIR_SEPARATOR, Hashes, hash_columns, unit_hashes

EXACT, NORMAL, PLACE = "exact\0", "normal\0", "place\0"
"""What the columns of hashes are called beside those of a file, of which none is called so."""
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


def hash_batch(batch: Any, texts: Sequence[str], placed: bool) -> Hashes:
    """The hashes of a record batch, a row for each column of them: exact, normal and, as its bits, the place.

    Args:
        placed: whether the place is asked for.
    """
    columns = [batch.column(text) for text in texts]
    found = list(example_hashes(columns))
    if placed:
        found.append(place_hashes(columns).view(np.uint64))
    return np.stack(found)


def hash_table(hashes: Sequence[Hashes]) -> dict[str, Any]:
    """The hashes as Arrow's columns."""
    import pyarrow as pa

    found = {EXACT: pa.array(hashes[0]), NORMAL: pa.array(hashes[1])}
    return {**found, PLACE: pa.array(hashes[2].view(np.float64))} if len(hashes) > 2 else found
