"""BitFit: train the biases and the fresh head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtune.core.errors import ModelError
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register

if TYPE_CHECKING:
    from torch import nn


class BitFitConfig(MethodConfig):
    """Train only the bias terms, those of layer normalisation included, and the fresh head; all else is frozen."""

    @property
    def freezes(self) -> frozenset[str]:
        return frozenset({"embeddings"})


@register
class BitFit(Method):
    name, config_class = "bitfit", BitFitConfig
    excludes = frozenset({"choice of trainable parameters"})
    config: BitFitConfig

    def prepare(self, model: nn.Module) -> nn.Module:
        from fairtune.models.model_parts import head_parameters

        head = head_parameters(model)
        # a bias by the last part of its name: `bias`, or such as DeBERTa's `q_bias`
        biases = {name for name, _ in model.named_parameters() if name.rpartition(".")[2].endswith("bias")} - head
        if not biases:
            raise ModelError(
                f"{type(model).__name__}: its base model has no bias terms, so bitfit has nothing to train."
            )
        for name, parameter in model.named_parameters():
            if name not in biases | head:
                parameter.requires_grad_(False)
        return model
