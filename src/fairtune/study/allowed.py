"""What a place in a study allows, in plain English: help, docs and messages all take it from here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from fairtune.settings.values import NAME
from fairtune.study.fragments import Fragment, choices, resolved

FAR = 10_000
"""From here on a limit is no advice but a guard."""
NEAR_ZERO = 1e-6
"""A smallest value below this only keeps zero out."""
MOST_KEYS = 4
"""Keys of a mapping that are named; more have a page of their own."""
SINGULAR = {"integer": "a whole number", "number": "a number", "string": "a text", "object": "a mapping"}
PLURAL = {"integer": "whole numbers", "number": "numbers", "string": "texts", "object": "mappings"}
COUNTS = {1: "one", 2: "two", 3: "three"}


def allowed_text(fragment: Fragment, found: Any = None) -> str:
    """What a place allows: "a number from 0 to 1, or `balanced`, or a list of numbers".

    A fragment whose title begins with an article says it itself.

    Args:
        found: what stands there; limits that are far away are named only where they are exceeded.
    """
    literals: list[Any] = []
    phrases: list[str] = []
    for option in _options(fragment):
        given = _literals(option)
        if given is None:
            phrases.append(_phrase(option, found))
        else:
            literals += given
    words = list(dict.fromkeys(map(word, literals)))
    if not phrases:
        return _either(words)
    listed = [_either([f"`{one}`" for one in words])] if words else []
    return ", or ".join([*dict.fromkeys(phrases), *listed])


def word(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _options(fragment: Fragment) -> Iterator[Fragment]:
    """What a fragment allows one of, however deep."""
    fragment = resolved(fragment)
    options = choices(fragment)
    if _has_own_words(fragment) or not options:
        yield fragment
    for option in () if _has_own_words(fragment) else options:
        yield from _options(option)


def _has_own_words(fragment: Fragment) -> bool:
    return str(fragment.get("title", "")).startswith(("a ", "an "))


def _literals(fragment: Fragment) -> list[Any] | None:
    """The values that are allowed, where they can be listed."""
    if _has_own_words(fragment):
        return None
    if "const" in fragment:
        return [fragment["const"]]
    if "enum" in fragment:
        return list(fragment["enum"])
    listed: dict[str, list[Any]] = {"boolean": [True, False], "null": [None]}
    return listed.get(_type(fragment))


def _type(fragment: Fragment) -> str:
    """Its type; nothing where it has several."""
    return found if isinstance(found := fragment.get("type"), str) else ""


def _phrase(fragment: Fragment, found: Any) -> str:
    """What a fragment that is no choice and cannot be listed allows."""
    kind = _type(fragment)
    if _has_own_words(fragment):
        return str(fragment["title"])
    if kind == "array":
        return _list_phrase(fragment, found)
    if kind == "object":
        return _mapping_phrase(fragment, found)
    if fragment.get("pattern") == NAME:
        longest = fragment["maxLength"]
        return (
            f"a name of letters, digits, _, + and -, starting with a letter or digit, of at most {longest} characters"
        )
    if "pattern" in fragment:
        return f"a text of the form {fragment['pattern'].strip('^$')}"
    return " ".join(filter(None, [SINGULAR.get(kind, "a value"), _limits(fragment, found)]))


def _list_phrase(fragment: Fragment, found: Any) -> str:
    if "prefixItems" in fragment:
        parts = fragment["prefixItems"]
        return f"a list of {COUNTS.get(len(parts), str(len(parts)))} {_entries(parts[0], found)}"
    most = fragment.get("maxItems", math.inf)
    limit = f"at most {most:,} " if isinstance(found, list | tuple) and len(found) > most else ""
    items = fragment.get("items", {})
    if not fragment.get("uniqueItems"):
        return f"a list of {limit}{_entries(items, found)}"
    if _literals(resolved(items)) is None:
        return f"a list of {limit}different {_entries(items, found)}"
    return f"a list of {limit}{_entries(items, found)}, each once"


def _entries(fragment: Fragment, found: Any) -> str:
    """What the entries of a list are: "numbers, each at least 0"."""
    fragment = resolved(fragment)
    kind = _type(fragment)
    if _has_own_words(fragment) or choices(fragment) or "pattern" in fragment:
        return f"entries, each {allowed_text(fragment, found)}"
    if (literals := _literals(fragment)) is not None:
        return f"any of {', '.join(map(word, literals))}"
    if kind == "object" and fragment.get("properties"):
        return f"mappings, each with {_keys(fragment)}"
    limits = _limits(fragment, found).removeprefix("of ")
    return f"{PLURAL.get(kind, 'values')}{f', each {limits}' if limits else ''}"


def _mapping_phrase(fragment: Fragment, found: Any) -> str:
    if fragment.get("properties"):
        return f"a mapping with {_keys(fragment)}" if len(fragment["properties"]) <= MOST_KEYS else "a mapping"
    values = fragment.get("additionalProperties")
    return f"a mapping from names to {_entries(values, found)}" if isinstance(values, dict) and values else "a mapping"


def _keys(fragment: Fragment) -> str:
    names = [f"`{name}`" for name in fragment["properties"]]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _limits(fragment: Fragment, found: Any) -> str:
    """Between what a number must be: "from 0 to 1", "above 0 and at most 1", "of at least 1"."""
    given = {
        key: fragment[key]
        for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
        if key in fragment and (abs(fragment[key]) < FAR or _is_beyond(found, fragment[key]))
    }
    if 0 < given.get("minimum", 0) < NEAR_ZERO:
        given = {"exclusiveMinimum": 0, **{key: value for key, value in given.items() if key != "minimum"}}
    numbers = {key: _number(value) for key, value in given.items()}
    if "minimum" in numbers and "maximum" in numbers:
        return f"from {numbers['minimum']} to {numbers['maximum']}"
    words = [
        text.format(numbers[key])
        for key, text in (
            ("minimum", "of at least {}"),
            ("exclusiveMinimum", "above {}"),
            ("maximum", "at most {}" if "exclusiveMinimum" in numbers else "of at most {}"),
            ("exclusiveMaximum", "below {}"),
        )
        if key in numbers
    ]
    return " and ".join(words)


def _is_beyond(found: Any, limit: float) -> bool:
    if isinstance(found, list | tuple | dict):
        return any(_is_beyond(part, limit) for part in (found.values() if isinstance(found, dict) else found))
    return isinstance(found, int | float) and (found > limit if limit > 0 else found < limit)


def _number(value: float) -> str:
    """A limit, a large one with its digits in groups."""
    if abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e16 else f"{value:g}"
    return word(value)


def _either(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
