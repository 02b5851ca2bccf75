"""What a label says: nothing at all, in the words that tables have for it, or a number, however it was written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from fairtune.core.errors import one_of

NO_LABEL = frozenset(
    [
        *("NaN", "nan", "NA", "N/A", "n/a", "<NA>", "null", "NULL", "None", "#N/A", "#N/A N/A", "#NA"),
        *("-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    ]
)
"""Words that mean that there is no label, besides an empty cell: those that pandas reads so. `none` is not among them."""
SHOWN = 5
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")


def whole_number(label: str) -> str:
    """A whole number without its point: `1.0` is `1`; any other label as it is."""
    found = _WHOLE.fullmatch(label)
    return found[1] if found else label


def other_spellings(labels: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Labels that are no class by themselves but the same number as one, and that class: 1.0 is 1, wherever one is written so.

    Args:
        names: the classes.
    """
    by_number: dict[str, list[str]] = {}
    for name in names:
        by_number.setdefault(whole_number(name), []).append(name)
    alike = {label: by_number.get(whole_number(label), []) for label in labels if label not in names}
    return {label: found[0] for label, found in alike.items() if len(found) == 1}


def merged_names(names: Sequence[str]) -> list[str]:
    """Classes of which none is another one's number: of 1 and 1.0 in one file, 1."""
    return [name for name in names if whole_number(name) == name or whole_number(name) not in names]


def without_label(
    where: object, column: str, words: Collection[str], rows: Sequence[int], of: int, way: str, listed: str = "`labels`"
) -> str:
    """That rows have no label, which they are, and what to do.

    Args:
        words: what stands in their place, where something does.
        rows: the numbers of those rows.
        of: how many rows there are.
        way: how they are left out.
        listed: where a user lists the classes.
    """
    places = one_of(rows[:SHOWN]) + (" ..." if len(rows) > SHOWN else "")
    said = f"; {one_of(repr(word) for word in sorted(words))} counts as none" if words else ""
    named = f" If {one_of(sorted(words))} is the name of a class, list all classes under {listed}." if words else ""
    return (
        f"{where}: column '{column}' has no label in {len(rows):,} of {of:,} rows (rows {places}{said}); fill or remove them, or "
        f"leave them out with {way}.{named}"
    )
