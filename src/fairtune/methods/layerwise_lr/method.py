"""Which parameter trains with which learning rate: by its depth in the model, or by groups of names and parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from fairtune.core.errors import FairtuneError, ModelError
from fairtune.methods.base import Method, Moment, ParamGroup
from fairtune.methods.layerwise_lr import LayerwiseLRConfig, RateGroup
from fairtune.models.depth import PARTS, Depths, find_depths
from fairtune.models.parameters import checkpoint_name

SHOWN = 3
"""How many names a message gives."""


@dataclass(frozen=True)
class RatePlace:
    """Trainable parameters that share a rate.

    Args:
        name: where they lie, or the pattern that they match.
        scale: multiplies the run's learning rate, unless `lr` says theirs.
    """

    name: str
    parameters: tuple[nn.Parameter, ...]
    scale: float = 1.0
    lr: float | None = None

    def rate(self, lr: float) -> float:
        """Their learning rate in a run with this one."""
        return lr * self.scale if self.lr is None else self.lr


@dataclass(frozen=True)
class Rate:
    """One row of what `describe_rates` tells: a place, its learning rate, and how much is there to train."""

    place: str
    lr: float
    tensors: int
    parameters: int


def layerwise_groups(
    model: nn.Module,
    lr: float,
    *,
    decay: float | None = None,
    head_multiplier: float | None = None,
    groups: Sequence[Mapping[str, Any]] | None = None,
    weight_decay: float = 0.01,
) -> list[ParamGroup]:
    """Parameter groups for a torch optimizer: every trainable parameter in exactly one, vectors without weight decay.

    Args:
        decay: each layer's rate as a share of that of the layer above it; .95 if absent.
        head_multiplier: the head's rate as a multiple of `lr`; 1 if absent.
        groups: in place of both: `{"match": pattern of names}` or `{"part": "embeddings", "lower", "upper" or "head"}` each,
            with `"lr"`, a learning rate, or `"scale"`, a multiple of `lr`.

    Raises:
        FairtuneError: a setting is impossible, or the model's layers cannot be found.
    """
    config = _config(decay, head_multiplier, groups)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    plain: list[ParamGroup] = [
        {"params": [p for p in trainable if p.ndim > 1], "lr": lr, "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "lr": lr, "weight_decay": 0.0},
    ]
    return with_rates(plain, find_places(model, config))


def describe_rates(
    model: nn.Module,
    lr: float,
    *,
    decay: float | None = None,
    head_multiplier: float | None = None,
    groups: Sequence[Mapping[str, Any]] | None = None,
) -> list[Rate]:
    """The rates that `layerwise_groups` gives with the same settings, from the top of the model down, the head last."""
    return rows_of(find_places(model, _config(decay, head_multiplier, groups)), lr)


def rows_of(places: Sequence[RatePlace], lr: float) -> list[Rate]:
    """The places as rows, at a learning rate."""
    return [
        Rate(place.name, place.rate(lr), len(place.parameters), sum(p.numel() for p in place.parameters))
        for place in places
    ]


def find_places(model: nn.Module, config: LayerwiseLRConfig) -> list[RatePlace]:
    """Every trainable parameter in exactly one place, the places with the run's own rate first.

    Raises:
        ModelError: the layers cannot be found, or a parameter does not match exactly one group.
    """
    found = _by_group(model, config.groups) if config.groups is not None else _by_depth(model, config)
    found = [place for place in found if place.parameters]
    listed = [id(p) for place in found for p in place.parameters]
    trainable = {id(p) for p in model.parameters() if p.requires_grad}
    assert len(listed) == len(trainable), "a parameter is in two places or in none"
    assert set(listed) == trainable, "a parameter is in two places or in none"
    return found


def with_rates(groups: Sequence[ParamGroup], places: Sequence[RatePlace]) -> list[ParamGroup]:
    """An optimizer's groups, each cut by places; all that a group says but its rate stays."""
    cut: list[ParamGroup] = []
    for place in places:
        inside = {id(p) for p in place.parameters}
        for group in groups:
            chosen = [p for p in group["params"] if id(p) in inside]
            if chosen:
                cut.append({**group, "params": chosen, "lr": place.rate(group["lr"]), "name": place.name})
    return cut


def _by_depth(model: nn.Module, config: LayerwiseLRConfig) -> list[RatePlace]:
    depths = _depths(model)
    top = depths.layers - 1
    scales = {depths.above: 1.0, **{depth: config.decay ** (top - depth) for depth in range(top, -2, -1)}}
    scales[depths.head] = config.head_multiplier
    trainable = [p for p in model.parameters() if p.requires_grad]
    return [
        RatePlace(depths.name(depth), tuple(p for p in trainable if depths.of[id(p)] == depth), scale)
        for depth, scale in scales.items()
    ]


def _by_group(model: nn.Module, groups: Sequence[RateGroup]) -> list[RatePlace]:
    """Patterns see the checkpoint's names, which PEFT's wrapper does not change; parts go by depth."""
    known = {name: p for own, p in model.named_parameters() if (name := checkpoint_name(own)) is not None}
    depths = _depths(model) if any(group.part for group in groups) else None
    matches = {
        name: [
            group
            for group in groups
            if (depths.part(p) == group.part if depths and group.part else re.search(group.match or "", name))
        ]
        for name, p in known.items()
    }
    trained = {name: found for name, found in matches.items() if known[name].requires_grad}
    missed = [name for name, found in trained.items() if not found]
    if missed:
        raise ModelError(f"layerwise_lr: no group in `groups` covers {_some(missed)}. {_for_the_rest(groups)}")
    double = [name for name, found in trained.items() if len(found) > 1]
    if double:
        first = " and ".join(repr(group.place) for group in trained[double[0]])
        raise ModelError(
            f"layerwise_lr: more than one group of `groups` has {_some(double)} (the first: {first}); each parameter must be in "
            "exactly one."
        )
    for group in groups:
        if group.part is None and not any(group in found for found in matches.values()):
            raise ModelError(
                f"layerwise_lr: the pattern {group.match!r} of `groups` matches no parameter; the model has "
                f"{_some(list(known))}."
            )
    return [
        RatePlace(
            group.place,
            tuple(known[name] for name, found in trained.items() if group in found),
            1.0 if group.scale is None else group.scale,
            group.lr,
        )
        for group in groups
    ]


def _for_the_rest(groups: Sequence[RateGroup]) -> str:
    """What to add so that every parameter is in a group."""
    if parts := {group.part for group in groups if group.part}:
        return f"The parts are {', '.join(PARTS)}; add {', '.join(part for part in PARTS if part not in parts) or 'patterns'}."
    others = "|".join(f"(?:{group.match})" for group in groups)
    return f"For all that others leave, add {{match: '^(?!.*(?:{others}))', scale: 1}}."


def _depths(model: nn.Module) -> Depths:
    try:
        return find_depths(model)
    except ModelError as error:
        raise ModelError(
            f"layerwise_lr: {error} Give `groups`, patterns of parameter names with their rates."
        ) from None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _config(
    decay: float | None, head_multiplier: float | None, groups: Sequence[Mapping[str, Any]] | None
) -> LayerwiseLRConfig:
    given = {"decay": decay, "head_multiplier": head_multiplier, "groups": groups}
    try:
        return LayerwiseLRConfig.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        reasons = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors())
        raise FairtuneError(f"layerwise_groups: {reasons}.") from None


class LayerwiseLR(Method):
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
        if moment.step != 1 or self.config.idle:
            return
        rows = rows_of(self._places, self._lr)
        arrays = {
            "lr": torch.tensor([row.lr for row in rows], dtype=torch.float64),
            "parameters": torch.tensor([row.parameters for row in rows]),
        }
        moment.record("layerwise_lr", arrays, places=[row.place for row in rows], rates=[row.lr for row in rows])
