"""What a place in a study allows, in plain English, from its JSON schema: help, docs and messages all take it from here."""

from __future__ import annotations

from functools import cache
from typing import Any

from fairtune.core.numbers import listed
from fairtune.core.plugins import loaded_plugins
from fairtune.study.schema import study_json_schema
from fairtune.study.yaml_tree import Path

Fragment = dict[str, Any]
MOST_KEYS = 4
"""Keys of a mapping that are named; more have a page of their own."""
KINDS = {"integer": "whole number", "number": "number", "string": "text", "object": "mapping"}


def study_schema() -> Fragment:
    """The schema of a study with its references followed, and the methods of every plug-in that is loaded."""
    return _study_schema(loaded_plugins())


@cache
def _study_schema(_: object) -> Fragment:
    return spelt_out(study_json_schema())


def spelt_out(schema: Fragment) -> Fragment:
    """A schema with its references followed; the description of the place that refers wins."""
    definitions = schema["$defs"]

    def follow(part: Any) -> Any:
        if isinstance(part, list):
            return [follow(one) for one in part]
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("description"), str):  # the lines of a docstring
            part = {**part, "description": " ".join(part["description"].split())}
        target = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {key: follow(value) for key, value in (target | part).items() if key not in ("$ref", "$defs")}

    followed: Fragment = follow(schema)
    return followed


def options(fragment: Fragment) -> list[Fragment]:
    """What a fragment allows one of, however deep; itself where it is no choice, or says in its title what it allows."""
    choices = [] if _has_own_words(fragment) else [*fragment.get("anyOf", ()), *fragment.get("oneOf", ())]
    return [option for choice in choices for option in options(choice)] or [fragment]


def fragment_at(path: Path, schema: Fragment | None = None) -> Fragment:
    """The part of a schema, or else of that of a study, that rules the value at a path; empty where there is no such place."""
    current = study_schema() if schema is None else schema
    for part in path:
        current = next((found for option in options(current) if (found := _inside(option, part))), {})
    return current


def _inside(fragment: Fragment, part: str | int) -> Fragment:
    found: Any
    if isinstance(part, int):
        firsts = fragment.get("prefixItems", ())
        found = firsts[part] if part < len(firsts) else fragment.get("items")
    else:
        patterns = fragment.get("patternProperties", {}).values()
        others = fragment.get("additionalProperties") or next(iter(patterns), None)
        found = fragment.get("properties", {}).get(part, others)
    return found if isinstance(found, dict) else {}


def allowed_text(fragment: Fragment) -> str:
    """What a place allows: "a number from 0 to 1, or `balanced`"; a fragment whose title begins with an article says it itself."""
    parts = [(option, _literals(option)) for option in options(fragment)]
    phrases = dict.fromkeys(_phrase(option) for option, literals in parts if not literals)
    words = dict.fromkeys(word(value) for _, literals in parts for value in literals)
    if not phrases:
        return listed(words, "or")
    return ", or ".join([*phrases, *([listed((f"`{one}`" for one in words), "or")] if words else [])])


def word(value: Any) -> str:
    """A value as YAML has it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _has_own_words(fragment: Fragment) -> bool:
    return str(fragment.get("title", "")).startswith(("a ", "an "))


def _literals(fragment: Fragment) -> list[Any]:
    """The values that are allowed, where they can be listed."""
    if _has_own_words(fragment):
        return []
    kinds: dict[Any, list[Any]] = {"boolean": [True, False], "null": [None]}
    listed: list[Any] = [fragment["const"]] if "const" in fragment else fragment.get("enum", [])
    return listed or kinds.get(fragment.get("type"), [])


def _phrase(fragment: Fragment) -> str:
    """What a fragment that is no choice and cannot be listed allows."""
    kind, keys = fragment.get("type"), list(fragment.get("properties", ()))
    if _has_own_words(fragment):
        return str(fragment["title"])
    if kind == "array":
        firsts, most = fragment.get("prefixItems"), fragment.get("maxItems")
        number = "two " if firsts else f"at most {most:,} " if most else ""
        entry = allowed_text(firsts[0] if firsts else fragment["items"])
        return f"a list of {number}{'different ' if fragment.get('uniqueItems') else ''}entries (each {entry})"
    if kind == "object" and 0 < len(keys) <= MOST_KEYS:
        return f"a mapping with {listed(f'`{key}`' for key in keys)}"
    forms = {
        "minimum": "from {}" if "maximum" in fragment else "of at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "to {}" if "minimum" in fragment else "at most {}",
        "exclusiveMaximum": "below {}",
    }
    between = " " if {"minimum", "maximum"} <= fragment.keys() else " and "
    limits = between.join(form.format(_number(fragment[key])) for key, form in forms.items() if key in fragment)
    return f"a {KINDS.get(str(kind), 'value')} {limits}".strip()


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1000 else f"{value:,.0f}"
