"""The kinds of value a study file holds: how each is read, and what its JSON schema says of it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

NAME = r"^[A-Za-z0-9][A-Za-z0-9_+-]*$"
RESERVED = ("logs", "plans", "report")
"""Folders that a study keeps beside those of its arms."""
MOST_SEEDS = 1000
AUTO = "auto"
SHORTEST_INPUT = 4


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _arm_name(name: str) -> str:
    if name in RESERVED:
        raise PydanticCustomError("reserved", "a name that the study's own folders use")
    return name


def _seeds(value: Any) -> tuple[int, ...]:
    if _whole_number(value) and 1 <= value <= MOST_SEEDS:
        return tuple(range(value))
    if (
        isinstance(value, list | tuple)
        and value
        and all(_whole_number(s) and s >= 0 for s in value)
        and len(set(value)) == len(value)
    ):
        return tuple(value)
    raise PydanticCustomError("seeds", "not a count of seeds, nor a list of different seeds")


def _warmup(value: float) -> float:
    if value > 1 and value != int(value):
        raise PydanticCustomError("warmup", "a warm-up above 1 counts optimizer steps and must be whole")
    return value


def _evaluate(value: Any) -> Any:
    if value == "epoch" or (_whole_number(value) and value >= 1):
        return value
    raise PydanticCustomError("evaluate", "neither an epoch nor a number of steps")


def _max_length(value: Any) -> Any:
    if value == AUTO or (_whole_number(value) and value >= SHORTEST_INPUT):
        return value
    raise PydanticCustomError("max_length", "neither a number of tokens nor auto")


def _interval(value: Any) -> Any:
    if _whole_number(value) and value >= 1:
        return value
    if isinstance(value, str):
        number, unit = value.strip().rstrip("minsh "), value.strip().lstrip("0123456789. ")
        if unit in INTERVAL_UNITS and number.replace(".", "", 1).isdigit() and float(number) > 0:
            return f"{float(number):g}{unit}"
    raise PydanticCustomError("interval", "not an interval")


def _margin(value: Any) -> Any:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            share = float(value.strip()[:-1])
        except ValueError:
            share = -1.0
        if share > 0:
            return f"{share:g}%"
    elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise PydanticCustomError("margin", "not a margin")


def _devices(value: Any) -> tuple[str, ...]:
    devices = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not devices or not all(isinstance(d, str) and re.fullmatch(DEVICE, d) for d in devices):
        raise PydanticCustomError("devices", "not a device")
    return devices


Number = Annotated[float, Strict()]
"""A float or an int; without `Strict`, pydantic takes `true` and `"3"` for numbers too."""
Whole = Annotated[int, Strict()]
DEVICE = r"auto|cpu|mps|cuda(:[0-9]+)?"
INTERVAL_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
Seeds = Annotated[
    tuple[int, ...],
    PlainValidator(_seeds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_SEEDS},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1, "uniqueItems": True},
            ]
        }
    ),
]
Interval = Annotated[
    int | str,
    PlainValidator(_interval),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^[0-9.]+ ?(s|min|h)$", "title": "a time such as 90s, 5min, 1h"},
            ]
        }
    ),
]
Evaluate = Annotated[
    Literal["epoch"] | int,
    PlainValidator(_evaluate),
    WithJsonSchema({"anyOf": [{"enum": ["epoch"], "type": "string"}, {"type": "integer", "minimum": 1}]}),
]
MaxLength = Annotated[
    Literal["auto"] | int,
    PlainValidator(_max_length),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": SHORTEST_INPUT}, {"enum": [AUTO], "type": "string"}]}),
]
Margin = Annotated[
    float | str,
    PlainValidator(_margin),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^[0-9.]+ ?%$", "title": "a share such as 1.5%"},
            ]
        }
    ),
]
_DEVICE_SCHEMA = {"type": "string", "pattern": f"^({DEVICE})$", "title": "a device: auto, cpu, mps, cuda, cuda:1"}
Devices = Annotated[
    tuple[str, ...],
    PlainValidator(_devices),
    PlainSerializer(list),
    WithJsonSchema({"anyOf": [_DEVICE_SCHEMA, {"type": "array", "items": _DEVICE_SCHEMA, "minItems": 1}]}),
]
Columns = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda v: [v] if isinstance(v, str) else v),
    Field(min_length=1, max_length=2),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            ]
        }
    ),
]
Warmup = Annotated[Number, AfterValidator(_warmup)]
ArmName = Annotated[str, Field(pattern=NAME), AfterValidator(_arm_name)]
