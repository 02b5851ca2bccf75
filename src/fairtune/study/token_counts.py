"""A number of tokens as a study file writes it: 100M, 2.5B, 300k, or a whole number."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

MOST_TOKENS = 10**15
UNITS = {"k": 1_000, "M": 1_000_000, "B": 1_000_000_000}
_written = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kKmMbB])")


def _tokens(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TOKENS:
        return value
    found = _written.fullmatch(value.strip()) if isinstance(value, str) else None
    if found:
        unit = found[2].lower() if found[2] in "kK" else found[2].upper()
        count = Decimal(found[1]) * UNITS[unit]
        if 1 <= count <= MOST_TOKENS and count == int(count):
            return int(count)
    raise PydanticCustomError("tokens", "not a number of tokens")


Tokens = Annotated[
    int,
    PlainValidator(_tokens),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS},
                {
                    "type": "string",
                    "pattern": r"^[0-9]+(\.[0-9]+)? ?[kKmMbB]$",
                    "title": "a count such as 100M, 2.5B, 300k, of at most 1000000B",
                },
            ]
        }
    ),
]
