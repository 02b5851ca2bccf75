"""The JSON Schema of report.json, made from the types of what it holds and the words that describe them."""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fairtune.report.json_keys import KEYS, REPORT_SCHEMA

FILE = "report.schema.json"
PLAIN = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def shipped_schema() -> dict[str, Any]:
    """The schema as the package has it."""
    found: dict[str, Any] = json.loads((files("fairtune.report") / FILE).read_text(encoding="utf-8"))
    return found


def make_schema() -> dict[str, Any]:
    """The schema as the code has it."""
    known: dict[str, Any] = {}
    properties = {name: {**_schema(key.kind, known), "description": key.help} for name, key in KEYS.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": REPORT_SCHEMA,
        "description": "A report of fairtune. Keys keep their names and meaning; new ones may be added.",
        "type": "object",
        "properties": {**properties, "schema": {"const": REPORT_SCHEMA, "description": KEYS["schema"].help}},
        "required": list(KEYS),
        "$defs": dict(sorted(known.items())),
    }


def field_help(kind: type) -> dict[str, str]:
    """What a dataclass says of its fields under Args; several may share a line."""
    found: dict[str, str] = {}
    _, _, args = (inspect.getdoc(kind) or "").partition("Args:")
    for names, text in re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n        .*)*)", args, re.MULTILINE):
        found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return found


def _schema(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    if kind is Any or kind is object:
        return {}
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if kind is float:
        return {"type": ["number", "null"]}  # what is not a finite number becomes null
    if is_dataclass(kind):
        return _reference(kind, known)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _either([_schema(one, known) for one in inner])
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (tuple, list) or (origin is not None and origin.__name__ == "Sequence"):
        return _array(inner, known)
    if origin is dict or origin is Mapping:
        return {"type": "object", "additionalProperties": _schema(inner[1], known)}
    raise TypeError(f"{kind}: there is no schema of such a type")


def _array(inner: tuple[Any, ...], known: dict[str, Any]) -> dict[str, Any]:
    if len(inner) == 2 and inner[1] is ...:
        inner = inner[:1]
    elif len(inner) > 1:
        parts = [_schema(one, known) for one in inner]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    return {"type": "array", "items": _schema(inner[0], known)}


def _either(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One of several; plain types become one list."""
    if all(set(part) == {"type"} for part in parts):
        named = [part["type"] if isinstance(part["type"], list) else [part["type"]] for part in parts]
        return {"type": list(dict.fromkeys(name for names in named for name in names))}
    return {"anyOf": parts}


def _reference(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in known:
        known[name] = {}  # so that a type may hold itself
        hints, told = get_type_hints(kind), field_help(kind)
        own = {field.name: _schema(hints[field.name], known) for field in fields(kind)}
        described = {one: {**found, "description": told[one]} if one in told else found for one, found in own.items()}
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        known[name] = {"description": summary, "type": "object", "properties": described, "required": list(own)}
    return {"$ref": f"#/$defs/{name}"}
