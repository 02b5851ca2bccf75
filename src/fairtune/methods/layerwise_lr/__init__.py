"""Layer-wise rates: the lower a layer, the slower it learns."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from fairtune.core.errors import shown
from fairtune.methods.arms import register_arm
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT, Number

MOST_GROUPS = 1000
HIGHEST_RATE = 0.1
"""Above this, what is written as a rate was meant as a multiplier, as earlier versions read it."""
Multiplier = Annotated[Number, Field(gt=0, le=1e6)]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{shown(pattern)} is not a regular expression: {error}") from None
    return pattern


def _is_a_rate(lr: float) -> float:
    if lr > HIGHEST_RATE:
        raise ValueError(
            f"found {lr:g}; allowed: a learning rate of at most {HIGHEST_RATE:g}, such as 2e-5. For {lr:g} times the run's "
            f"rate, write scale: {lr:g}"
        )
    return lr


Rate = Annotated[
    Number,
    Field(gt=0),
    AfterValidator(_is_a_rate),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": HIGHEST_RATE}),
]


class RateGroup(BaseModel):
    """Parameters by their names or their part of the model, and their rate."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    match: Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_compiles)] | None = Field(
        None, description="A regular expression that is looked for in each parameter's name."
    )
    part: Literal["embeddings", "lower", "upper", "head"] | None = Field(
        None,
        description="In place of match, a part of any model: its embeddings, the lower or upper half of its layers (of an odd "
        "number the upper has one more), or head: everything above the layers, the pooler too.",
    )
    lr: Rate | None = Field(None, description="Their learning rate at the peak of the schedule, whatever the run's is.")
    scale: Multiplier | None = Field(
        None, description="In place of lr: the run's learning rate is multiplied by this for them."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> RateGroup:
        if (self.lr is None) == (self.scale is None):
            raise ValueError(
                "give exactly one of lr (a learning rate, such as 2e-5) and scale (a multiple of the run's, such as 0.5)"
            )
        if (self.match is None) == (self.part is None):
            raise ValueError(
                "give exactly one of match (a pattern of parameter names) and part (embeddings, lower, upper or head)"
            )
        return self

    @model_serializer(mode="wrap")
    def _as_given(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in plain(self).items() if value is not None}

    def rate(self, lr: float) -> float:
        """At the peak, in a run with this learning rate."""
        return lr * self.scale if self.scale is not None else self.lr or lr

    @property
    def place(self) -> str:
        """What it matches, as a record has it."""
        return self.part or self.match or ""


class LayerwiseLRConfig(MethodConfig):
    """Train lower layers with lower learning rates: layer i of L with lr x decay^(L-1-i), embeddings with lr x decay^L."""

    decay: Number = Field(
        0.95, gt=0, le=1, description="Each layer's learning rate as a share of that of the layer above it."
    )
    head_multiplier: Multiplier = Field(
        1.0,
        description="The head's learning rate, all outside the base model, as a multiple of the run's.",
    )
    groups: Annotated[tuple[RateGroup, ...], Field(min_length=1, max_length=MOST_GROUPS)] | None = Field(
        None,
        description="In place of decay and head_multiplier: groups of parameters, each by `part` of the model or by `match` in "
        "their names, with a learning rate `lr` or a multiple `scale` of the run's; each trainable parameter must be in exactly "
        "one.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> LayerwiseLRConfig:
        beside = sorted({"decay", "head_multiplier"} & self.model_fields_set)
        if self.groups is not None and beside:
            raise ValueError(
                f"groups is given together with {' and '.join(beside)}; groups say every rate, so keep one or the other"
            )
        return self

    @model_serializer(mode="wrap")
    def _as_given(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Only the way that is used, so that what was written can be read again."""
        unused = {"groups"} if self.groups is None else {"decay", "head_multiplier"}
        return {name: value for name, value in plain(self).items() if name not in unused}

    @property
    def idle(self) -> bool:
        """One rate for all."""
        if self.groups is not None:
            return all(group.scale == 1 for group in self.groups)
        return self.decay == 1 and self.head_multiplier == 1

    @property
    def absolute(self) -> bool:
        """Whether the run's learning rate plays no part."""
        return self.groups is not None and all(group.lr is not None for group in self.groups)

    def control_lr(self, lr: float) -> float:
        rates = [group.rate(lr) for group in self.groups or ()] or [lr]
        return min(max(lr, min(rates)), max(rates))

    def control_for(self, acting: MethodConfig) -> bool:
        """One rate is the control of many."""
        return self.idle and isinstance(acting, LayerwiseLRConfig) and not acting.idle


register(
    "layerwise_lr",
    LayerwiseLRConfig,
    "fairtune.methods.layerwise_lr.method:LayerwiseLR",
    claims=["learning rates of the layers"],
)
register_arm(
    "layerwise-published",
    "Rates of the published title classifier, absolute: embeddings and lower half 2e-5, upper half 3e-5, head 5e-5.",
    [
        {
            "layerwise_lr": {
                "groups": [
                    {"part": "embeddings", "lr": 2e-5},
                    {"part": "lower", "lr": 2e-5},
                    {"part": "upper", "lr": 3e-5},
                    {"part": "head", "lr": 5e-5},
                ]
            }
        }
    ],
)
