"""What a place in a study allows, in plain English, from its JSON schema: help, docs and messages all take it from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from fairtune.core.numbers import listed
from fairtune.core.plugins import loaded_plugins
from fairtune.study.schema import study_json_schema
from fairtune.study.yaml_tree import Path

Fragment = dict[str, Any]
MOST_KEYS = 4
"""Keys of a mapping that are named; more have a page of their own."""
FAR = 10_000
"""From here on a limit is a guard and no advice."""
KINDS = {"integer": "whole number", "number": "number", "string": "text", "object": "mapping"}
_OTHER: ContextVar[Fragment | None] = ContextVar("other", default=None)


def schema_root() -> Fragment:
    """The JSON schema of a study, with the methods of every plug-in that is loaded; or the one that rules for now."""
    return _OTHER.get() or _study_schema(loaded_plugins())


@contextmanager
def ruled_by(schema: Fragment) -> Iterator[None]:
    """Let places be those of another kind of file, so that its problems are worded in the same way."""
    token = _OTHER.set(schema)
    try:
        yield
    finally:
        _OTHER.reset(token)


@cache
def _study_schema(_: object) -> Fragment:
    return study_json_schema()


def resolved(fragment: Fragment) -> Fragment:
    """The fragment with its reference followed; the description of the referring place wins."""
    if "$ref" not in fragment:
        return fragment
    target = schema_root()["$defs"][fragment["$ref"].rpartition("/")[2]]
    return {**target, **{k: v for k, v in fragment.items() if k != "$ref"}}


def choices(fragment: Fragment) -> list[Fragment]:
    """What a fragment allows one of; nothing where it is no choice."""
    return [*fragment.get("anyOf", ()), *fragment.get("oneOf", ())]


def options(fragment: Fragment) -> Iterator[Fragment]:
    """What a fragment allows one of, however deep; itself where it is no choice, or says in its title what it allows."""
    fragment = resolved(fragment)
    if _has_own_words(fragment) or not choices(fragment):
        yield fragment
    else:
        for option in choices(fragment):
            yield from options(option)


def fragment_at(path: Path) -> Fragment | None:
    """The part of the schema that rules the value at a path, or None where the schema has no such place."""
    current: Fragment | None = schema_root()
    for part in path:
        current = next((found for option in options(current or {}) if (found := _inside(option, part))), None)
    return None if current is None else resolved(current)


def _inside(fragment: Fragment, part: str | int) -> Fragment | None:
    if isinstance(part, int):
        firsts = fragment.get("prefixItems", ())
        return firsts[part] if part < len(firsts) else fragment.get("items")
    others = fragment.get("additionalProperties") or next(iter(fragment.get("patternProperties", {}).values()), None)
    return fragment.get("properties", {}).get(part) or (others if isinstance(others, dict) else None)


def allowed_text(fragment: Fragment, far: bool = False) -> str:
    """What a place allows: "a number from 0 to 1, or `balanced`, or a list of numbers".

    A fragment whose title begins with an article says it itself.

    Args:
        far: also name limits that only guard a machine.
    """
    parts = list(options(fragment))
    phrases = [_phrase(part, far) for part in parts if _literals(part) is None]
    words = list(dict.fromkeys(word(value) for part in parts for value in _literals(part) or ()))
    if not phrases:
        return listed(words, "or")
    return ", or ".join([*dict.fromkeys(phrases), *([listed((f"`{one}`" for one in words), "or")] if words else [])])


def word(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _has_own_words(fragment: Fragment) -> bool:
    return str(fragment.get("title", "")).startswith(("a ", "an "))


def _literals(fragment: Fragment) -> list[Any] | None:
    """The values that are allowed, where they can be listed."""
    if _has_own_words(fragment):
        return None
    kinds: dict[str, list[Any]] = {"boolean": [True, False], "null": [None]}
    listed: list[Any] = [fragment["const"]] if "const" in fragment else fragment.get("enum", [])
    return listed or kinds.get(str(fragment.get("type")))


def _phrase(fragment: Fragment, far: bool) -> str:
    """What a fragment that is no choice and cannot be listed allows."""
    kind, keys = fragment.get("type"), list(fragment.get("properties", ()))
    if _has_own_words(fragment):
        return str(fragment["title"])
    if kind == "array" and "prefixItems" in fragment:
        return f"a list of two {_entries(fragment['prefixItems'][0], far)}"
    if kind == "array":
        entries, most = _entries(fragment.get("items", {}), far), far and fragment.get("maxItems")
        unique = fragment.get("uniqueItems")
        if entries.startswith("any of "):
            return f"a list of {entries}{', each once' if unique else ''}"
        return f"a list of {f'at most {most:,} ' if most else ''}{'different ' if unique else ''}{entries}"
    if kind == "object" and 0 < len(keys) <= MOST_KEYS:
        return f"a mapping with {listed(f'`{key}`' for key in keys)}"
    limits = _limits(fragment, far)
    return f"a {KINDS.get(str(kind), 'value')}{f' {limits}' if limits else ''}"


def _entries(fragment: Fragment, far: bool) -> str:
    """What the entries of a list are: "numbers, each at least 0"."""
    fragment = resolved(fragment)
    if literals := _literals(fragment):
        return f"any of {', '.join(map(word, literals))}"
    if _has_own_words(fragment) or choices(fragment) or 0 < len(fragment.get("properties", ())) <= MOST_KEYS:
        return f"entries, each {allowed_text(fragment, far)}"
    limits = _limits(fragment, far).removeprefix("of ")
    return f"{KINDS.get(str(fragment.get('type')), 'value')}s{f', each {limits}' if limits else ''}"


def _limits(fragment: Fragment, far: bool) -> str:
    """Between what a number must be: "from 0 to 1", "above 0 and at most 1", "of at least 1"."""
    near = {key: value for key, value in fragment.items() if "imum" in key and (far or abs(value) < FAR)}
    limits = {key: word(value) if abs(value) < 1000 else f"{value:,.0f}" for key, value in near.items()}
    if {"minimum", "maximum"} <= limits.keys():
        return f"from {limits['minimum']} to {limits['maximum']}"
    forms = {
        "minimum": "of at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}" if "exclusiveMinimum" in limits else "of at most {}",
        "exclusiveMaximum": "below {}",
    }
    return " and ".join(form.format(limits[key]) for key, form in forms.items() if key in limits)
