"""Biases and the head train; everything else is frozen."""

from __future__ import annotations

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.methods.base import Method
from fairtune.methods.bitfit import BitFitConfig
from fairtune.models.model_parts import head_parameters


class BitFit(Method):
    config: BitFitConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        head = head_parameters(model)
        biases = {name for name, _ in model.named_parameters() if is_bias(name)} - head
        if not biases:
            raise ModelError(
                f"{type(model).__name__}: its base model has no bias terms, so bitfit has nothing to train."
            )
        for name, parameter in model.named_parameters():
            if name not in biases | head:
                parameter.requires_grad_(False)
        return model


def is_bias(name: str) -> bool:
    """Whether a parameter is a bias, by its name: `bias`, or such as DeBERTa's `q_bias`."""
    return name.rpartition(".")[2].endswith("bias")
