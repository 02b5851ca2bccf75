"""Labels as files have them: words for nothing, numbers however they were written, and what no class is called."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, one_of
from fairtune.tasks.reading.reader import require_unicode

NO_LABEL = frozenset(
    [
        *("NaN", "nan", "NA", "N/A", "n/a", "<NA>", "null", "NULL", "None", "#N/A", "#N/A N/A", "#NA"),
        *("-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    ]
)
"""Words that mean that there is no label, besides an empty cell: those that pandas reads so. `none` is not among them."""
SHOWN = 5
LONGEST_LABEL = 1000
"""Characters."""
MOST_GRADES = 20
"""So many different numbers may be grades, such as 0.5 to 10 by halves; more of them are measured."""
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
    said = f"; {one_of(repr(word) for word in sorted(words))} counts as none" if words else ""
    named = f" If {one_of(sorted(words))} is the name of a class, list all classes under {listed}." if words else ""
    return (
        f"{where}: column '{column}' has no label in {len(rows):,} of {of:,} rows (rows {some_rows(rows)}{said}); fill or remove "
        f"them, or leave them out with {way}.{named}"
    )


def some_rows(numbers: Sequence[int]) -> str:
    """The first of some rows."""
    return one_of(numbers[:SHOWN]) + (" ..." if len(numbers) > SHOWN else "")


def refuse_scores(where: object, column: str, counts: Mapping[str, int]) -> None:
    """Refuse labels that are measured numbers and no classes: many different ones, with fractions or hardly ever the same.

    Args:
        counts: how often each label occurs.
    """
    if len(counts) <= MOST_GRADES or not all(map(is_number, counts)):
        return
    fraction = next((label for label in counts if not float(label).is_integer()), None)
    if fraction or 2 * len(counts) > sum(counts.values()):
        raise DataError(
            f"{where}: column '{column}' looks like a regression target: {len(counts):,} different numbers, such as "
            f"{fraction or next(iter(counts))}. fairtune trains classifiers and no regressions yet; name a column with classes, "
            "or sort the numbers into a few of them."
        )


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def label_values(where: Path | str, column: str, numbers: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Labels as they are written, checked: texts without spaces at their ends, whole numbers without a point; None for nothing."""
    known: dict[tuple[type, Any], Any] = {}
    found = []
    for number, value in zip(numbers, values, strict=True):
        if isinstance(value, list | dict):
            raise DataError(f"{where}: row {number}: column '{column}' holds {str(value)[:60]}; a label is one value.")
        key = type(value), value
        if key not in known:
            known[key] = _label(value)
            _require_name(where, number, column, str(known[key]))
        found.append(known[key])
    return found


def _label(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return value if value is None or isinstance(value, int) else str(value)


def _require_name(where: Path | str, number: int, column: str, label: str) -> None:
    require_unicode(where, number, column, label)
    if len(label) > LONGEST_LABEL:
        raise DataError(
            f"{where}: row {number}: column '{column}' holds a label of {len(label):,} characters, {label[:40]!r} ...; is it a "
            f"text? A label has {LONGEST_LABEL:,} at most."
        )
