"""The model a run starts from: the checkpoint, changed by the arm's methods. The same settings always build the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from fairtune.methods.base import Method
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.loading import LoadedModel, load_classifier
from fairtune.models.sources import ModelSource
from fairtune.training.seeding import derive, seed_all


@dataclass(frozen=True)
class Start:
    """What a run starts from.

    Args:
        model: prepared by the methods; may wrap or replace what was loaded.
        loaded: the checkpoint's network as it was loaded, and which tensors came from the checkpoint.
    """

    model: nn.Module
    methods: list[Method]
    loaded: LoadedModel


def build_start(settings: Mapping[str, Any], source: ModelSource, labels: tuple[str, ...]) -> Start:
    """Load the checkpoint with a head for the labels, and let each method prepare it.

    Args:
        settings: of the run, as its plan.json has them.
    """
    seed = int(settings["seed"])
    seed_all(derive(seed, "head"))
    loaded = load_classifier(source, labels)
    methods = [
        create_method(parse_method_use(use), derive(seed, "method", place))
        for place, use in enumerate(settings["methods"])
    ]
    model: nn.Module = loaded.network
    for method in methods:
        model = method.prepare(model)
    return Start(model, methods, loaded)


def plain_model(model: nn.Module, methods: list[Method]) -> Any:
    """A trained model as plain transformers has it: what the methods added is folded in or taken off."""
    for method in reversed(methods):
        model = method.plain(model)
    return model
