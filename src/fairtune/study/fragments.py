"""Parts of the JSON schema of a study: the whole with every plug-in's methods, and the part that rules a place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from fairtune.core.plugin_files import Plugin
from fairtune.core.plugins import loaded_plugins
from fairtune.study.schema import study_json_schema
from fairtune.study.yaml_tree import Path

Fragment = dict[str, Any]


_OTHER: ContextVar[Fragment | None] = ContextVar("other", default=None)


def schema_root() -> Fragment:
    """The JSON schema of a study, with the methods of every plug-in that is loaded; or the one that rules for now."""
    other = _OTHER.get()
    return _schema(loaded_plugins()) if other is None else other


@contextmanager
def ruled_by(schema: Fragment) -> Iterator[None]:
    """Let places be those of another kind of file, so that its problems are worded in the same way."""
    token = _OTHER.set(schema)
    try:
        yield
    finally:
        _OTHER.reset(token)


@cache
def _schema(_: tuple[Plugin, ...]) -> Fragment:
    return study_json_schema()


def resolved(fragment: Fragment) -> Fragment:
    """The fragment with its reference followed; the description of the referring place wins."""
    if "$ref" not in fragment:
        return fragment
    target = schema_root()["$defs"][fragment["$ref"].rpartition("/")[2]]
    return {**target, **{k: v for k, v in fragment.items() if k != "$ref"}}


def alternatives(fragment: Fragment) -> Iterator[Fragment]:
    """The fragment itself, and whatever it allows one of."""
    fragment = resolved(fragment)
    yield fragment
    for option in choices(fragment):
        yield from alternatives(option)


def choices(fragment: Fragment) -> list[Fragment]:
    """What a fragment allows one of; nothing where it is no choice."""
    return [*fragment.get("anyOf", ()), *fragment.get("oneOf", ())]


def fragment_at(path: Path) -> Fragment | None:
    """The part of the schema that rules the value at a path, or None where the schema has no such place."""
    current: Fragment = schema_root()
    for part in path:
        for option in alternatives(current):
            if isinstance(part, int) and isinstance(option.get("items"), dict):
                current = resolved(option["items"])
                break
            if isinstance(part, int) and part < len(option.get("prefixItems", ())):
                current = resolved(option["prefixItems"][part])
                break
            if part in option.get("properties", {}):
                current = resolved(option["properties"][part])
                break
            if isinstance(part, str) and isinstance(option.get("additionalProperties"), dict):
                current = resolved(option["additionalProperties"])
                break
            if isinstance(part, str) and option.get("patternProperties"):
                current = resolved(next(iter(option["patternProperties"].values())))
                break
        else:
            return None
    return current
