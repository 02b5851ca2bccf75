"""JSON that people may read, of data classes and plain data: in one walk, where `json.dumps` with an indent takes three."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from json.encoder import encode_basestring
from typing import Any


def indented_json(value: Any) -> str:
    """What `json.dumps(value, indent=1, ensure_ascii=False)` gives; data classes are mappings, and what is not finite is null.

    Raises:
        TypeError: something in it has no place in JSON.
    """
    return _text(value, "\n")


def _text(value: Any, line: str) -> str:
    """Args:
    line: what begins a new line here.
    """
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value) if math.isfinite(value) else "null"
    if isinstance(value, int):
        return int.__repr__(value)
    inner = line + " "
    if isinstance(value, list | tuple):
        return f"[{inner}{f',{inner}'.join([_text(one, inner) for one in value])}{line}]" if value else "[]"
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        parts = [f"{encode_basestring(str(name))}: {_text(one, inner)}" for name, one in value.items()]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}" if parts else "{}"
    raise TypeError(f"a {type(value).__name__} has no place in JSON")
