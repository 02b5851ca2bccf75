"""The small parts of sentences: plurals, lists, capitals, texts cut short."""

from __future__ import annotations

from collections.abc import Iterable


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 run`, `1,200 runs`.

    Args:
        nouns: more than one of them, where that is not the noun with an s.
    """
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def listed(names: Iterable[object], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, final = map(str, names)
    return f"{', '.join(others)} {last} {final}" if others else final


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def clip(text: str, most: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
