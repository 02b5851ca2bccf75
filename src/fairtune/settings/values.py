"""The kinds of value a study file holds: how each is read, what limits it has, and what its JSON schema says of it."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict

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
MOST_ARMS, MOST_RUNS, MOST_CLASSES = 1000, 100_000, 1000
MOST_STEPS = 1_000_000_000
"""Of everything that is counted: steps, examples, tokens of a block."""
MOST_TOKENS = 10**15
AUTO = "auto"
LANGUAGE_MODEL = "language_model"
DEVICE = r"auto|cpu|mps|cuda(:[0-9]{1,3})?"
INTERVAL_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
TOKEN_UNITS = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}


class Section(BaseModel):
    """A part of a study file: unknown keys are refused, nothing changes after reading; what a field means stands below it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def refuse() -> Any:
    """Refuse a value by what its place allows, as messages say it."""
    raise ValueError


def each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A list of different values; true and 1 are two."""
    return values if len({(type(value) is bool, value) for value in values}) == len(values) else refuse()


def listed(value: Any) -> Any:
    """One text as a list of it."""
    return [value] if isinstance(value, str) else value


def form(pattern: str, title: str) -> Any:
    """The form of a text, and what messages and help call it, with an article."""
    return Field(pattern=f"^(?:{pattern})$", title=title)


def _tokens(text: str) -> int:
    """The number in a count such as 300k, 100M or 2.5B."""
    count = Decimal(text[:-1].strip()) * TOKEN_UNITS[text[-1].lower()]
    return int(count) if count == int(count) and 1 <= count <= MOST_TOKENS else refuse()


def _arm_name(name: str) -> str:
    return name if name.lower() not in RESERVED else refuse()  # not every file system tells cases apart


def _warmup(value: float) -> float:
    return value if value <= 1 or value == int(value) else refuse()


def _interval(text: str) -> str:
    number, unit = re.sub(r"[a-z ]", "", text), re.sub(r"[^a-z]", "", text)
    return f"{float(number):g}{unit}" if float(number) > 0 else refuse()


def _share(text: str) -> str:
    share = float(text.rstrip(" %"))
    return f"{share:g}%" if 0 < share < math.inf else refuse()


def _place(name: str) -> str:
    """A path that a file system can be asked for, whether there is something or not."""
    path = name.encode()
    if "\0" in name or len(path) > LONGEST_PATH or max(map(len, path.split(b"/"))) > LONGEST_PART:
        raise ValueError(
            f"found {name[:40]!r} of {len(path):,} bytes; a path has at most {LONGEST_PATH:,} bytes, each name in it at most "
            f"{LONGEST_PART}, and no NUL"
        )
    return name


Number = Annotated[float, Strict()]
"""A float or an int; without `Strict`, pydantic takes `true` and `"3"` for numbers too."""
Whole = Annotated[int, Strict()]
Count = Annotated[Whole, Field(ge=1, le=MOST_STEPS)]
_DECIMAL = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_PERCENT = rf"{_DECIMAL}([eE][-+]?[0-9]+)? *%"
Interval = (
    Count | Annotated[str, form(rf"{_DECIMAL} *(s|min|h)", "a time such as 90s, 5min or 1h"), AfterValidator(_interval)]
)
Evaluate = Literal["epoch"] | Count
MaxLength = Literal["auto"] | Annotated[Whole, Field(ge=4, le=1_000_000)]
Workers = Literal["auto"] | Annotated[Whole, Field(ge=1, le=1024)]
Threads = Annotated[Whole, Field(ge=1, le=1024)]
Margin = Annotated[Number, Field(gt=0)] | Annotated[str, form(_PERCENT, "a share such as 1.5%"), AfterValidator(_share)]
LARGEST_PRECISION = 0.5
_Device = Annotated[str, Field(pattern=f"^({DEVICE})$", title="a device (auto, cpu, mps, cuda or cuda:1)")]
Devices = Annotated[
    tuple[_Device, ...],
    Field(min_length=1),
    BeforeValidator(listed, _Device | Annotated[list[_Device], Field(min_length=1, title="a list of devices")]),
    PlainSerializer(list),
]
Column = Annotated[str, Field(max_length=LONGEST_TEXT)]
"""The name of a column, or a label: whatever stands in the user's data."""
ColumnName = Annotated[Column, Field(title="a column's name")]
_Pair = Annotated[list[Column], Field(min_length=1, max_length=2, title="a list of one or two columns' names")]
Columns = Annotated[tuple[Column, ...], Field(min_length=1, max_length=2), BeforeValidator(listed, ColumnName | _Pair)]
Warmup = Annotated[Number, AfterValidator(_warmup)]
Name = Annotated[
    str,
    Field(
        pattern=NAME,
        max_length=LONGEST_NAME,
        title=f"a name of letters, digits, _, + and -, starting with a letter or digit, of at most {LONGEST_NAME} characters",
    ),
]
ArmName = Annotated[Name, AfterValidator(_arm_name)]
Place = Annotated[str, Field(min_length=1), AfterValidator(_place)]
"""A file, a folder or a hub id."""
DataFile = Annotated[Place, Field(title="a file or a folder")]
Seed = Annotated[Whole, Field(ge=0, le=LARGEST_SEED)]
SeedCount = Annotated[Whole, Field(ge=1, le=MOST_SEEDS)]
SeedList = Annotated[
    tuple[Seed, ...],
    Field(min_length=1, max_length=MOST_SEEDS, json_schema_extra={"uniqueItems": True}),
    AfterValidator(each_once),
]
if TYPE_CHECKING:  # what becomes of them
    Tokens = int
    Precision = float
    Seeds = tuple[int, ...]
else:
    Tokens = (
        Annotated[Whole, Field(ge=1, le=MOST_TOKENS)]
        | Annotated[
            str,
            form(r"[0-9]+(\.[0-9]+)? ?[kKmMbB]", "a count such as 300k, 100M or 2.5B, of at most 1000000B"),
            AfterValidator(_tokens),
        ]
    )
    Precision = (
        Annotated[Number, Field(gt=0, le=LARGEST_PRECISION)]
        | Annotated[
            str,
            form(rf"{_PERCENT}|{_DECIMAL}", "a share such as 1%, of at most 50%"),
            AfterValidator(lambda text: float(text.rstrip(" %")) / (100 if text.endswith("%") else 1)),
            Field(gt=0, le=LARGEST_PRECISION),
        ]
    )
    Seeds = Annotated[SeedCount, AfterValidator(lambda count: tuple(range(count)))] | SeedList
