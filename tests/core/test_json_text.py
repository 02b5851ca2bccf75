"""JSON in one walk is the very text that `json.dumps` writes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest

from fairtune.core.json_text import indented_json


@dataclass(frozen=True)
class Point:
    name: str
    places: tuple[float, ...]


PLAIN: list[Any] = [
    None, True, 0, -3, 1.0, 1e-7, 1e300, 0.1 + 0.2, "", 'a "b" \\ c\n\x1b\u2028é', [], {}, [[]], {"a": {}}, {"a": [1, {"b": None}]},
    [1, [2, [3, "x"]], {"y": False}],
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN)
def test_the_text_is_that_of_json_dumps(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=1, ensure_ascii=False)


def test_data_classes_are_mappings_and_what_is_no_number_is_null() -> None:
    value = {"p": Point("x", (1.5, math.nan)), "q": (math.inf,), 3: [Point("", ())]}
    plain = {"p": {"name": "x", "places": [1.5, None]}, "q": [None], "3": [{"name": "", "places": []}]}
    assert indented_json(value) == json.dumps(plain, indent=1, ensure_ascii=False)


def test_what_has_no_place_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="complex has no place"):
        indented_json([1j])
