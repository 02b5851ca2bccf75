"""The head of a transformers model: what stands outside its base model."""

from __future__ import annotations

from torch import nn


def base_model(model: nn.Module) -> nn.Module:
    """The model without its head; a model without a head is its own base."""
    found = getattr(model, str(getattr(model, "base_model_prefix", "")) or "-", model)
    return found if isinstance(found, nn.Module) else model


def head_parameters(model: nn.Module) -> frozenset[str]:
    """Names of the parameters outside the base model; one that is tied to the base model's is not the head's own."""
    base = {id(parameter) for parameter in base_model(model).parameters()}
    return frozenset(name for name, parameter in model.named_parameters() if id(parameter) not in base)


def head_modules(model: nn.Module) -> list[str]:
    """Names of the modules, directly under the model, that hold the head's parameters."""
    return list(dict.fromkeys(name.partition(".")[0] for name in sorted(head_parameters(model))))
