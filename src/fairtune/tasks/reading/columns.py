"""Columns that are asked for, and what to say where one is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairtune.core.errors import DataError, nearest, one_of

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
ONE_COLUMN = (
    " That is one column: if several are meant, every row needs as many as the header; quote texts with separators."
)
COLUMNS_SHOWN, COLUMN_SHOWN, COLUMNS_COMPARED = 50, 60, 1000


def check_columns(where: object, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse data that lacks columns."""
    there = set(found)
    if lacking := [column for column in wanted if column not in there]:
        names = one_of((name[:COLUMN_SHOWN] for name in found), COLUMNS_SHOWN)
        hints = dict.fromkeys(nearest(column, found[:COLUMNS_COMPARED]) for column in lacking)
        is_one = len(found) == 1 and any(separator in found[0] for separator in SEPARATORS)
        hint = ONE_COLUMN if is_one else "".join(hints)
        asked = one_of(f"'{column}'" for column in lacking)
        raise DataError(f"{where}: no column {asked}; columns: {names}.{hint}")


def choose_columns(where: object, found: Sequence[str], wanted: Sequence[str] | None) -> Sequence[str]:
    """The columns to read, each of which is there once: the wanted ones, or all."""
    if wanted is not None:
        check_columns(where, found, wanted)
    chosen = found if wanted is None else wanted
    twice = [name for name, times in Counter(found).items() if times > 1 and name in chosen]
    if twice:
        raise DataError(f"{where}: column '{twice[0]}' is there more than once; give each column a name of its own.")
    return chosen
