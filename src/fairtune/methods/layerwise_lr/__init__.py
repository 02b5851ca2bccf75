"""Layer-wise rates: the lower a layer, the slower it learns."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from fairtune.core.errors import shown
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT, Number

MOST_GROUPS = 1000
Multiplier = Annotated[Number, Field(gt=0, le=1e6)]


class RateGroup(BaseModel):
    """Parameters by their names, and their rate."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    match: str = Field(
        max_length=LONGEST_TEXT, description="A regular expression that is looked for in each parameter's name."
    )
    lr: Multiplier = Field(description="The run's learning rate is multiplied by this for them.")

    @field_validator("match")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{shown(pattern)} is not a regular expression: {error}") from None
        return pattern


class LayerwiseLRConfig(MethodConfig):
    """Train lower layers with lower learning rates: layer i of L with lr x decay^(L-1-i), embeddings with lr x decay^L."""

    decay: Number = Field(
        0.95, gt=0, le=1, description="Each layer's learning rate as a share of that of the layer above it."
    )
    head_multiplier: Multiplier = Field(
        1.0,
        description="The head's learning rate, all outside the base model, as a multiple of the run's; published: 10.",
    )
    groups: Annotated[tuple[RateGroup, ...], Field(min_length=1, max_length=MOST_GROUPS)] | None = Field(
        None,
        description="In place of decay and head_multiplier: patterns of parameter names with their rates; each trainable "
        "parameter must match exactly one.",
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
            return all(group.lr == 1 for group in self.groups)
        return self.decay == 1 and self.head_multiplier == 1

    def control_for(self, acting: MethodConfig) -> bool:
        """One rate is the control of many."""
        return self.idle and isinstance(acting, LayerwiseLRConfig) and not acting.idle


register(
    "layerwise_lr",
    LayerwiseLRConfig,
    "fairtune.methods.layerwise_lr.method:LayerwiseLR",
    claims=["learning rates of the layers"],
)
