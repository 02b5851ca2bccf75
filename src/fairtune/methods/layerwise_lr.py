"""Layer-wise rates: the lower a layer, the slower it learns; by depth in the model, or by groups of names and parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fairtune.core.errors import ModelError, shown
from fairtune.methods.arms import register_arm
from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT, Number

if TYPE_CHECKING:
    from torch import nn

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


Rate = Annotated[Number, Field(gt=0, le=HIGHEST_RATE)]


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
        return self.idle and isinstance(acting, LayerwiseLRConfig) and not acting.idle


class RatePlace(NamedTuple):
    """Trainable parameters that share a rate, and where they lie, or the pattern that they match."""

    name: str
    parameters: Sequence[nn.Parameter]
    group: RateGroup


def layerwise_groups(model: nn.Module, lr: float, *, weight_decay: float = 0.01, **settings: Any) -> list[ParamGroup]:
    """Parameter groups for a torch optimizer: every trainable parameter in exactly one, vectors without weight decay.

    Each group says by `name` where its parameters lie.

    Args:
        settings: those of the method: `decay` and `head_multiplier`, or `groups`; `fairtune methods layerwise_lr` explains them.

    Raises:
        FairtuneError: a setting is impossible, or the model's layers cannot be found.
    """
    config = LayerwiseLRConfig.read(settings, "layerwise_groups")
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    plain: list[ParamGroup] = [
        {"params": [p for p in trainable if p.ndim > 1], "lr": lr, "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "lr": lr, "weight_decay": 0.0},
    ]
    return with_rates(plain, find_places(model, config))


def find_places(model: nn.Module, config: LayerwiseLRConfig) -> list[RatePlace]:
    """Every trainable parameter in exactly one place, the places with the run's own rate first.

    Raises:
        ModelError: the layers cannot be found, or a parameter does not match exactly one group.
    """
    found = _by_group(model, config.groups) if config.groups is not None else _by_depth(model, config)
    return [place for place in found if place.parameters]


def with_rates(groups: Sequence[ParamGroup], places: Sequence[RatePlace]) -> list[ParamGroup]:
    """An optimizer's groups, each cut by places; all that a group says but its rate stays."""
    cut: list[ParamGroup] = []
    for place in places:
        inside = {id(p) for p in place.parameters}
        for group in groups:
            chosen = [p for p in group["params"] if id(p) in inside]
            if chosen:
                cut.append({**group, "params": chosen, "lr": place.group.rate(group["lr"]), "name": place.name})
    return cut


def _by_depth(model: nn.Module, config: LayerwiseLRConfig) -> list[RatePlace]:
    from fairtune.models.depth import find_depths

    depths = find_depths(model)
    top = depths.layers - 1
    scales = {depths.above: 1.0, **{depth: config.decay ** (top - depth) for depth in range(top, -2, -1)}}
    scales[depths.head] = config.head_multiplier
    trainable = [p for p in model.parameters() if p.requires_grad]
    return [
        RatePlace(
            depths.name(depth), [p for p in trainable if depths.of[id(p)] == depth], RateGroup(match="", scale=scale)
        )
        for depth, scale in scales.items()
    ]


def _by_group(model: nn.Module, groups: Sequence[RateGroup]) -> list[RatePlace]:
    """Patterns see the checkpoint's names, which PEFT's wrapper does not change; parts go by depth."""
    from fairtune.models.depth import PARTS, find_depths
    from fairtune.models.parameters import checkpoint_name

    known = {name: p for own, p in model.named_parameters() if (name := checkpoint_name(own)) is not None}
    depths = find_depths(model) if any(group.part for group in groups) else None
    matches = {
        name: [
            group
            for group in groups
            if (depths.part(p) == group.part if depths and group.part else re.search(group.match or "", name))
        ]
        for name, p in known.items()
    }
    trained = {name: found for name, found in matches.items() if known[name].requires_grad}
    for name, found in trained.items():
        if len(found) != 1:
            places = " and ".join(repr(group.place) for group in found) or "no group"
            others = "|".join(f"(?:{group.match})" for group in groups if group.match)
            rest = f"For all that others leave, add {{match: '^(?!.*(?:{others}))', scale: 1}}."
            raise ModelError(
                f"layerwise_lr: {name} is in {places} of `groups`; each parameter must be in exactly one. "
                + (f"The parts are {', '.join(PARTS)}." if depths else rest)
            )
    for group in groups:
        if group.part is None and not any(group in found for found in matches.values()):
            names = ", ".join(list(known)[:3])
            raise ModelError(
                f"layerwise_lr: the pattern {group.match!r} matches no parameter; the model has {names} ..."
            )
    return [
        RatePlace(group.place, [known[name] for name, found in trained.items() if group in found], group)
        for group in groups
    ]


@register
class LayerwiseLR(Method):
    name, config_class = "layerwise_lr", LayerwiseLRConfig
    excludes = frozenset({"learning rates of the layers"})
    config: LayerwiseLRConfig

    def __init__(self, config: LayerwiseLRConfig, seed: int = 0) -> None:
        super().__init__(config, seed)
        self._places: list[RatePlace] = []
        self._lr = 0.0

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        if self.config.idle and self.config.groups is None:
            return groups
        self._places, self._lr = find_places(model, self.config), float(groups[0]["lr"])
        return groups if self.config.idle else with_rates(groups, self._places)

    def after_step(self, moment: Moment) -> None:
        import torch

        if moment.step != 1 or self.config.idle:
            return
        rates = [place.group.rate(self._lr) for place in self._places]
        counts = [sum(p.numel() for p in place.parameters) for place in self._places]
        arrays = {"lr": torch.tensor(rates, dtype=torch.float64), "parameters": torch.tensor(counts)}
        moment.record("layerwise_lr", arrays, places=[place.name for place in self._places], rates=rates)


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
