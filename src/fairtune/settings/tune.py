"""The section `tune` of a study: every arm gets the same number of trials over the same space, chosen on validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, StrictBool, StrictStr, create_model

from fairtune.settings.sections import ARITHMETIC, Train, optional_fields
from fairtune.settings.values import Number, Section, SeedCount, SeedList, Whole, each_once, refuse

FIRST_SEED = 2_000_000
"""Where seeds of trials start if only their number is given, far from any that a study reports."""
DATA = ("examples", "eval_examples", "tokens")
"""Settings that decide what is learned from, which no arm may choose for itself."""
FIXED = ("betas", "precision", *ARITHMETIC)
"""Settings that are not a single value, or not a matter of training."""
Point = dict[str, Any]
"""A value for each tuned field."""


FieldName = Annotated[str, Field(min_length=1)]


class Range(Section):
    """All numbers between two, in a space."""

    low: Number
    """The smallest value."""
    high: Number
    """The largest value."""
    log: bool = Field(False, strict=True)
    """Draw evenly by ratio, as learning rates are."""

    def at(self, share: float) -> float:
        """The value at a share of the way through, in three significant digits."""
        span = self.high / self.low if self.log else self.high - self.low
        found = self.low * span**share if self.log else self.low + span * share
        return min(max(float(f"{found:.3g}"), self.low), self.high)


Values = tuple[bool | int | float | str | None, ...]
Space = Mapping[str, Values | Range]


def space_size(space: Space) -> int | None:
    """How many points a space has; None where it has a range."""
    sizes = [len(values) for values in space.values() if not isinstance(values, Range)]
    return math.prod(sizes) if len(sizes) == len(space) else None


def _range(found: Range) -> Range:
    return found if found.low < found.high and (found.low > 0 or not found.log) else refuse()


def _flattened(space: Any) -> Any:
    """A method's fields below its name, as in `focal: {gamma: [1, 2]}`, under one name each: `focal.gamma`."""
    if not isinstance(space, dict):
        return space
    found: dict[Any, Any] = {}
    for name, value in space.items():
        nested = isinstance(value, dict) and value and not set(value) & set(Range.model_fields)
        found.update({f"{name}.{field}": inner for field, inner in value.items()} if nested else {name: value})
    return found


if TYPE_CHECKING:
    SpaceValues = Any
    OwnSpace = Any
    TuningSeeds = tuple[int, ...]
else:
    SpaceValues = (
        Annotated[
            tuple[StrictBool | Whole | Number | StrictStr | None, ...],
            Field(
                min_length=1,
                title="a list of different values, such as [1e-5, 1e-4]",
                json_schema_extra={"uniqueItems": True},
            ),
            AfterValidator(each_once),
            PlainSerializer(list),
        ]
        | Annotated[
            Range,
            AfterValidator(_range),
            Field(title="a range {low: 1e-5, high: 1e-3, log: true}, low below high and above 0 where log"),
        ]
    )
    OwnSpace = Annotated[dict[FieldName, SpaceValues], Field(min_length=1, title="a mapping of a method's fields")]
    _Count = Annotated[SeedCount, AfterValidator(lambda count: tuple(range(FIRST_SEED, FIRST_SEED + count)))]
    TuningSeeds = Annotated[_Count | SeedList, PlainSerializer(list)]
Budget = create_model("Budget", __base__=Section, __doc__="What trials train with instead.", **optional_fields(Train))


class Tune(Section):
    """Choose settings for every arm by the same number of trials over the same space, on validation alone."""

    space: Annotated[
        dict[FieldName, SpaceValues],
        Field(min_length=1),
        BeforeValidator(_flattened, Annotated[dict[FieldName, SpaceValues | OwnSpace], Field(min_length=1)]),
    ] = Field(title="a mapping from fields to lists of values or ranges")
    """What is chosen: fields of `train`, for every arm, and a method's own as METHOD.FIELD, for the arms that have it; each with a
    list of values or a range {low, high, log}."""
    trials: Whole = Field(8, ge=1, le=10_000)
    """Settings that every arm tries, drawn once for all of them; at most as many as the space has."""
    seeds: TuningSeeds = (FIRST_SEED, FIRST_SEED + 1)
    """How many seeds each trial runs with, or a list of them; they are used for nothing else."""
    sampler: Literal["random", "grid"] = "random"
    """How trials are drawn from the space. random: some of its points; grid: all of them."""
    budget: Budget = Budget()
    """Any field of `train`, for trials alone, so that they cost less: examples, epochs, steps ..."""
    borrow: bool = Field(False, strict=True)
    """Let every arm also try the best settings of each of the others."""

    @property
    def shared(self) -> dict[str, Values | Range]:
        """The part of the space that all arms have."""
        return {name: values for name, values in self.space.items() if "." not in name}

    def own(self, methods: Sequence[str]) -> dict[str, Values | Range]:
        """The part of the space that only arms with these methods have."""
        return {
            name: values for name, values in self.space.items() if "." in name and name.partition(".")[0] in methods
        }

    @property
    def cheaper(self) -> dict[str, Any]:
        """What trials train with instead."""
        return dict(self.budget.model_dump(exclude_unset=True))
