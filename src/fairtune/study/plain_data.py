"""Whether data is what a study file could hold: of bounded size and depth, in texts and numbers that can be written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fairtune.core.errors import shown
from fairtune.study.yaml_tree import LONGEST_KEY, MOST_CHARACTERS, MOST_DIGITS, MOST_LEVELS, MOST_VALUES, Path

_CODES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_UNWRITABLE = re.compile(r"[\x00\ud800-\udfff]")
"""What no path and no encoding takes."""
NAMES: tuple[Path, ...] = (("study",),)
"""Values that become names of folders, as keys do. Elsewhere, as in a column's name, a code may stand: who prints writes it out."""
_LARGEST = 10**MOST_DIGITS


def plain_copy(value: Any) -> Any:
    """The data with mappings and lists of its own, so that changing it changes nothing of the caller's.

    Raises:
        ValueError: it is nested too deeply, perhaps in itself, or is too much.
    """
    return _copied(value, 0, [0])


def faults(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """What in the data could not stand in a study file, and where: texts that no file can hold, endless numbers."""
    if isinstance(value, dict):
        for key, part in value.items():
            place = (*path, shown(key) if _fault(key) else key)
            if reason := _fault(key):
                yield place, f"the key {reason}"
            yield from faults(part, place)
    elif isinstance(value, list | tuple):
        for position, part in enumerate(value):
            yield from faults(part, (*path, position))
    elif reason := _fault(value, path in NAMES):
        yield path, f"found {shown(value)}, which {reason}"


def _fault(value: Any, strictly: bool = True) -> str | None:
    """Why a single value cannot stand in a file of settings; None if it can."""
    if isinstance(value, str):
        found = (_CODES if strictly else _UNWRITABLE).search(value)
        if found is None:
            return None
        if "\ud800" <= found[0] <= "\udfff":
            return f"has half of a surrogate pair, {found[0]!r}, which no encoding can write; remove it"
        return f"has the control character {found[0]!r}; remove it"
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        return f"has more than {MOST_DIGITS} digits"
    return None


def _copied(value: Any, level: int, count: list[int]) -> Any:
    count[0] += 1
    if isinstance(value, str):
        count[0] += len(value) * MOST_VALUES // MOST_CHARACTERS
    if count[0] > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES:,} values, or {MOST_CHARACTERS:,} characters")
    if level >= MOST_LEVELS:
        raise ValueError(f"nested too deeply: more than {MOST_LEVELS} levels")
    if isinstance(value, dict):
        for key in value:
            if isinstance(key, str) and len(key) > LONGEST_KEY:
                raise ValueError(f"a key of more than {LONGEST_KEY:,} characters")
        return {key: _copied(part, level + 1, count) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part, level + 1, count) for part in value]
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_copied(part, level + 1, count) for part in value)
    return value
