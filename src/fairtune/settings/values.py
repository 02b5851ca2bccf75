"""The kinds of value a study file holds: how each is read, what bounds it has, and what its JSON schema says of it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

NAME = r"^[A-Za-z0-9][A-Za-z0-9_+-]*$"
LONGEST_NAME = 100
"""Characters, each one byte: names become folders and parts of file names, of which file systems take 255 bytes."""
LONGEST_PART, LONGEST_PATH = 255, 4096
"""Bytes that file systems take for one name and for a whole path."""
LONGEST_TEXT = 1000
"""Characters of the name of a column, of a label, of a pattern."""
RESERVED = ("logs", "plans", "report", "timing", "tuning", "jobs")
"""Folders that a study keeps beside those of its arms."""
MOST_SEEDS = 1000
LARGEST_SEED = 2**32 - 1
"""What every library takes as it is: numpy's and scikit-learn's generators, SQLite, JSON readers whose numbers are doubles."""
MOST_ARMS, MOST_METHODS, MOST_RUNS = 1000, 32, 100_000
MOST_CLASSES = 1000
MOST_STEPS = 1_000_000_000
"""Also of examples, which are steps of one."""
MOST_DEVICES, MOST_WORKERS, MOST_THREADS = 64, 1024, 1024
AUTO = "auto"
SHORTEST_INPUT, LONGEST_INPUT = 4, 1_000_000
LARGEST_MARGIN, LARGEST_SHARE = 1e6, 1000
LARGEST_PRECISION = 0.5
LONGEST_INTERVAL = 365 * 24 * 3600.0


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _bounded(value: Any, low: int, high: int) -> bool:
    return _whole_number(value) and low <= value <= high


def _arm_name(name: str) -> str:
    if name.lower() in RESERVED:  # not every file system tells cases apart
        raise PydanticCustomError("reserved", "a name that the study's own folders use")
    return name


def read_seeds(value: Any) -> tuple[int, ...]:
    """A number of seeds, counted from 0, or a list of different ones."""
    if _bounded(value, 1, MOST_SEEDS):
        return tuple(range(value))
    if (
        isinstance(value, list | tuple)
        and 1 <= len(value) <= MOST_SEEDS
        and all(_bounded(seed, 0, LARGEST_SEED) for seed in value)
        and len(set(value)) == len(value)
    ):
        return tuple(value)
    raise PydanticCustomError("seeds", "not a count of seeds, nor a list of different seeds")


def _warmup(value: float) -> float:
    if value > 1 and value != int(value):
        raise PydanticCustomError("warmup", "a warm-up above 1 counts optimizer steps and must be whole")
    return value


def _word_or_whole(word: str, low: int, high: int) -> PlainValidator:
    """One word, or a whole number between two bounds."""

    def read(value: Any) -> Any:
        if (isinstance(value, str) and value == word) or _bounded(value, low, high):
            return value
        raise PydanticCustomError("word_or_whole", "neither that word nor such a number")

    return PlainValidator(read)


def _interval(value: Any) -> Any:
    if _bounded(value, 1, MOST_STEPS):
        return value
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and 0 < (number := float(found[1])) * INTERVAL_UNITS[found[2]] <= LONGEST_INTERVAL:
        return f"{number:g}{found[2]}"
    raise PydanticCustomError("interval", "not an interval")


def _margin(value: Any) -> Any:
    if isinstance(value, str):
        found = _SHARE.fullmatch(value.strip())
        if found and 0 < (share := float(found[1])) <= LARGEST_SHARE:
            return f"{share:g}%"
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LARGEST_MARGIN:
        return float(value)
    raise PydanticCustomError("margin", "not a margin")


def _precision(value: Any) -> float:
    share = value
    if isinstance(value, str):
        found = _SHARE.fullmatch(value.strip())
        plain = re.fullmatch(_DECIMAL, value.strip())
        share = float(found[1]) / 100 if found else float(value) if plain else None
    if isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= LARGEST_PRECISION:
        return float(share)
    raise PydanticCustomError("precision", "not a precision")


def _devices(value: Any) -> tuple[str, ...]:
    devices = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not 1 <= len(devices) <= MOST_DEVICES or not all(
        isinstance(d, str) and re.fullmatch(DEVICE, d) for d in devices
    ):
        raise PydanticCustomError("devices", "not a device")
    return devices


def _place(name: str) -> str:
    """A path that a file system can be asked for, whether there is something or not."""
    if "\0" in name:
        raise ValueError(f"found {name[:60]!r}; no path has the character NUL")
    sizes = [len(part.encode("utf-8", "surrogatepass")) for part in name.split("/")]
    size, part = sum(sizes) + len(sizes) - 1, max(sizes)
    if size > LONGEST_PATH or part > LONGEST_PART:
        raise ValueError(
            f"found {name[:40]!r} and more, {size:,} bytes; a path has at most {LONGEST_PATH:,} bytes, and each name in it at "
            f"most {LONGEST_PART}"
        )
    return name


Number = Annotated[float, Strict()]
"""A float or an int; without `Strict`, pydantic takes `true` and `"3"` for numbers too."""
Whole = Annotated[int, Strict()]
DEVICE = r"auto|cpu|mps|cuda(:[0-9]{1,3})?"
INTERVAL_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_TIME = re.compile(rf"({_DECIMAL}) *(s|min|h)")
_SHARE = re.compile(rf"({_DECIMAL}(?:[eE][-+]?[0-9]+)?) *%")
_PERCENT = r"^[0-9.]+([eE][-+]?[0-9]+)? ?%$"


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _word(word: str) -> dict[str, Any]:
    return {"enum": [word], "type": "string"}


def _text(pattern: str, title: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern, "title": title}


def _positive(largest: float) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": largest}


def _any_of(*forms: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": list(forms)})


_SEED_LIST = {
    "type": "array",
    "items": _whole(0, LARGEST_SEED),
    "minItems": 1,
    "maxItems": MOST_SEEDS,
    "uniqueItems": True,
}
SEEDS_SCHEMA = {"anyOf": [_whole(1, MOST_SEEDS), _SEED_LIST]}
"""A number of seeds, or a list of different ones."""
Seeds = Annotated[tuple[int, ...], PlainValidator(read_seeds), WithJsonSchema(SEEDS_SCHEMA)]
Interval = Annotated[
    int | str,
    PlainValidator(_interval),
    _any_of(_whole(1, MOST_STEPS), _text(r"^[0-9.]+ ?(s|min|h)$", "a time such as 90s, 5min or 1h, of at most a year")),
]
Evaluate = Annotated[
    Literal["epoch"] | int,
    _word_or_whole("epoch", 1, MOST_STEPS),
    _any_of(_word("epoch"), _whole(1, MOST_STEPS)),
]
MaxLength = Annotated[
    Literal["auto"] | int,
    _word_or_whole(AUTO, SHORTEST_INPUT, LONGEST_INPUT),
    _any_of(_whole(SHORTEST_INPUT, LONGEST_INPUT), _word(AUTO)),
]
Workers = Annotated[
    Literal["auto"] | int,
    _word_or_whole(AUTO, 1, MOST_WORKERS),
    _any_of(_word(AUTO), _whole(1, MOST_WORKERS)),
]
Margin = Annotated[
    float | str,
    PlainValidator(_margin),
    _any_of(_positive(LARGEST_MARGIN), _text(_PERCENT, f"a share such as 1.5%, of at most {LARGEST_SHARE}%")),
]
Precision = Annotated[
    float,
    PlainValidator(_precision),
    _any_of(
        _positive(LARGEST_PRECISION), _text(_PERCENT, f"a share such as 1%, of at most {100 * LARGEST_PRECISION:g}%")
    ),
]
_DEVICE_SCHEMA = _text(f"^({DEVICE})$", "a device (auto, cpu, mps, cuda or cuda:1)")
_DEVICE_LIST = {
    "type": "array",
    "items": _DEVICE_SCHEMA,
    "minItems": 1,
    "maxItems": MOST_DEVICES,
    "title": f"a list of at most {MOST_DEVICES} devices",
}
Devices = Annotated[
    tuple[str, ...], PlainValidator(_devices), PlainSerializer(list), _any_of(_DEVICE_SCHEMA, _DEVICE_LIST)
]
Column = Annotated[str, Field(max_length=LONGEST_TEXT)]
"""The name of a column, or a label: whatever stands in the user's data."""
ColumnName = Annotated[Column, Field(title="a column's name")]
Columns = Annotated[
    tuple[Column, ...],
    BeforeValidator(lambda v: [v] if isinstance(v, str) else v),
    Field(min_length=1, max_length=2),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "maxLength": LONGEST_TEXT, "title": "a column's name"},
                {
                    "type": "array",
                    "items": {"type": "string", "maxLength": LONGEST_TEXT},
                    "minItems": 1,
                    "maxItems": 2,
                    "title": "a list of one or two columns' names",
                },
            ]
        }
    ),
]
Warmup = Annotated[Number, AfterValidator(_warmup)]
Name = Annotated[str, Field(pattern=NAME, max_length=LONGEST_NAME)]
ArmName = Annotated[Name, AfterValidator(_arm_name)]
Place = Annotated[str, Field(min_length=1, max_length=LONGEST_PATH), AfterValidator(_place)]
"""A file, a folder or a hub id."""
DataFile = Annotated[Place, Field(title="a file or a folder")]
Seed = Annotated[Whole, Field(ge=0, le=LARGEST_SEED)]


class Section(BaseModel):
    """A part of a study file: unknown keys are refused, nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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
    _any_of(
        _whole(1, MOST_TOKENS),
        _text(r"^[0-9]+(\.[0-9]+)? ?[kKmMbB]$", "a count such as 300k, 100M or 2.5B, of at most 1000000B"),
    ),
]
LANGUAGE_MODEL = "language_model"
