"""The fields of a study, read from its JSON schema: what each means, what it allows, its default."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from fairtune.core.plugins import Plugin, loaded_plugins
from fairtune.settings.values import NAME
from fairtune.study.schema import study_json_schema
from fairtune.study.yaml_tree import Path

Fragment = dict[str, Any]
FAR = 10_000
"""From here on a limit is no advice but a guard."""


def schema_root() -> Fragment:
    """The JSON schema of a study, with the methods of every plug-in that is loaded."""
    return _schema(loaded_plugins())


@cache
def _schema(_: tuple[Plugin, ...]) -> Fragment:
    return study_json_schema()


def _resolved(fragment: Fragment) -> Fragment:
    """The fragment with its reference followed; the description of the referring place wins."""
    if "$ref" not in fragment:
        return fragment
    target = schema_root()["$defs"][fragment["$ref"].rpartition("/")[2]]
    return {**target, **{k: v for k, v in fragment.items() if k != "$ref"}}


def alternatives(fragment: Fragment) -> Iterator[Fragment]:
    fragment = _resolved(fragment)
    yield fragment
    for option in (*fragment.get("anyOf", ()), *fragment.get("oneOf", ())):
        yield from alternatives(option)


def fragment_at(path: Path) -> Fragment | None:
    """The part of the schema that rules the value at a path, or None where the schema has no such place."""
    current: Fragment = schema_root()
    for part in path:
        for option in alternatives(current):
            if isinstance(part, int) and isinstance(option.get("items"), dict):
                current = _resolved(option["items"])
                break
            if isinstance(part, int) and part < len(option.get("prefixItems", ())):
                current = _resolved(option["prefixItems"][part])
                break
            if part in option.get("properties", {}):
                current = _resolved(option["properties"][part])
                break
            if isinstance(part, str) and isinstance(option.get("additionalProperties"), dict):
                current = _resolved(option["additionalProperties"])
                break
            if isinstance(part, str) and option.get("patternProperties"):
                current = _resolved(next(iter(option["patternProperties"].values())))
                break
        else:
            return None
    return current


def allowed_text(fragment: Fragment, found: Any = None) -> str:
    """What a place allows, in words.

    Args:
        found: what stands there; limits that are far away are named only where they are exceeded.
    """
    fragment = _resolved(fragment)
    if "title" in fragment and fragment["title"].startswith("a "):
        return str(fragment["title"])
    if "anyOf" in fragment or "oneOf" in fragment:
        texts = [allowed_text(option, found) for option in (*fragment.get("anyOf", ()), *fragment.get("oneOf", ()))]
        return " or ".join(dict.fromkeys(texts))
    if "const" in fragment:
        return _word(fragment["const"])
    if "enum" in fragment:
        return ", ".join(map(_word, fragment["enum"]))
    json_type = fragment.get("type", "value")
    if json_type == "array":
        if "prefixItems" in fragment:
            return f"a list of {len(fragment['prefixItems'])}, each {allowed_text(fragment['prefixItems'][0], found)}"
        different = "different " if fragment.get("uniqueItems") else ""
        most = fragment.get("maxItems", math.inf)
        different = (
            f"at most {most:,} {different}" if isinstance(found, list | tuple) and len(found) > most else different
        )
        return f"a list of {different}values, each {allowed_text(fragment.get('items', {}), found)}"
    words = {
        "integer": "a whole number",
        "number": "a number",
        "string": "a text",
        "boolean": "true or false",
        "null": "null",
        "object": "a mapping",
    }.get(json_type, "a value")
    limits = [
        text.format(_limit(fragment[key]))
        for key, text in (
            ("minimum", "{} or more"),
            ("exclusiveMinimum", "above {}"),
            ("maximum", "{} or less"),
            ("exclusiveMaximum", "below {}"),
        )
        if key in fragment and (abs(fragment[key]) < FAR or _is_beyond(found, fragment[key]))
    ]
    if fragment.get("pattern") == NAME:
        words += " of letters, digits, _, + and -, starting with a letter or digit"
        limits.append(f"at most {fragment['maxLength']} characters")
    elif "pattern" in fragment:
        words += f" of the form {fragment['pattern'].strip('^$')}"
    return ", ".join([words, *limits])


def _is_beyond(found: Any, limit: float) -> bool:
    if isinstance(found, list | tuple | dict):
        return any(_is_beyond(part, limit) for part in (found.values() if isinstance(found, dict) else found))
    return isinstance(found, int | float) and (found > limit if limit > 0 else found < limit)


def _limit(value: float) -> str:
    """A limit, a large one with its digits in groups."""
    if abs(value) >= FAR:
        return f"{value:,.0f}" if abs(value) < 1e16 else f"{value:g}"
    return str(value)


@dataclass(frozen=True)
class FieldDoc:
    """One field as help shows it."""

    path: str
    allowed: str
    default: str
    help: str


def field_docs() -> list[FieldDoc]:
    """Every field of a study file, in the order of the schema, methods last."""
    docs: list[FieldDoc] = []
    root = schema_root()
    _collect(root, "", docs)
    for name, fragment in _method_fragments().items():
        docs.append(FieldDoc(f"arms.NAME.methods: {name}", "", "", fragment["description"]))
        _collect(fragment, f"  {name}.", docs)
    return docs


def method_docs(name: str) -> list[FieldDoc]:
    """Every setting of a method."""
    docs: list[FieldDoc] = []
    _collect(_method_fragments()[name], "", docs)
    return docs


def _method_fragments() -> dict[str, Fragment]:
    found: dict[str, Fragment] = schema_root()["$defs"]["MethodUse"]["anyOf"][1]["properties"]
    return found


def _collect(fragment: Fragment, prefix: str, docs: list[FieldDoc]) -> None:
    required = set(fragment.get("required", ()))
    for name, raw in fragment.get("properties", {}).items():
        part = _resolved(raw)
        if name == "arms":
            docs.append(FieldDoc("arms.NAME", "a mapping", "required", part["description"]))
            own = schema_root()["$defs"]["Arm"]["properties"]
            docs.append(FieldDoc("arms.NAME.methods", "a list", "[]", own["methods"]["description"]))
            docs.append(FieldDoc("arms.NAME.preset", allowed_text(own["preset"]), "null", own["preset"]["description"]))
            docs.append(
                FieldDoc("arms.NAME.learner", allowed_text(own["learner"]), "null", own["learner"]["description"])
            )
            docs.append(FieldDoc("arms.NAME.*", "", "", "Any field of train, for this arm alone."))
            continue
        nested = [o for o in alternatives(part) if o.get("properties")]
        default = "required" if name in required else _default(part)
        docs.append(
            FieldDoc(
                prefix + name,
                "" if nested and not any("oneOf" in option for option in alternatives(part)) else allowed_text(part),
                "" if nested and name not in required else default,
                part.get("description", ""),
            )
        )
        for option in nested:
            _collect(option, f"{prefix}{name}.", docs)


def _default(part: Fragment) -> str:
    value = part.get("default")
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    return _word(value)


def _word(value: Any) -> str:
    """A value as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
