"""Facts in which several studies or runs differ, by name, each shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.core.numbers import DASH, setting

ABSENT = DASH


@dataclass(frozen=True)
class FactDifference:
    """Something that is not the same in all of them.

    Args:
        values: of each, in their order.
    """

    name: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {' / '.join(self.values)}"


def differing_facts(facts: Sequence[Mapping[str, Any]]) -> list[FactDifference]:
    """What differs among mappings of the same kind, in the order in which names first occur."""
    names = dict.fromkeys(name for one in facts for name in one)
    found = []
    for name in names:
        values = [one.get(name, ABSENT) for one in facts]
        if any(value != values[0] for value in values[1:]):
            found.append(FactDifference(name, tuple(_shown(values))))
    return found


def flat_facts(value: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested mappings as one, its names joined by dots; lists stay whole."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        own = f"{before}{name}"
        found |= flat_facts(inner, f"{own}.") if isinstance(inner, Mapping) and inner else {own: inner}
    return found


def method_facts(methods: Iterable[Any]) -> dict[str, Any]:
    """An arm's methods as facts: their names in order, then each setting of each."""
    uses = [use if isinstance(use, Mapping) else {str(use): {}} for use in methods]
    names = [name for use in uses for name in use]
    found: dict[str, Any] = {"methods": " + ".join(names) or "none"}
    for use in uses:
        for name, fields in use.items():
            found |= flat_facts(fields or {}, f"{name}.")
    return found


def _shown(values: Sequence[Any]) -> list[str]:
    """Texts that differ: long sums are cut, unless they differ only in what would be cut off."""
    texts = [ABSENT if value == ABSENT else "none" if value is None else setting(value) for value in values]
    cut = [f"{text[:12]}…" if _is_sum(text) else text for text in texts]
    return cut if len(set(cut)) == len(set(texts)) else texts


def _is_sum(text: str) -> bool:
    return len(text) >= 32 and all(sign in "0123456789abcdef" for sign in text)
