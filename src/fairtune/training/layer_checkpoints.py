"""Gradient checkpointing: a layer's inputs are kept, and its forward pass is made once more when its gradients are needed."""

from __future__ import annotations

from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.attention_kernels import outermost_networks
from fairtune.models.read_token import ReadTokenLayer

NOT_REENTRANT = {"use_reentrant": False}
"""The kind that works with frozen inputs, and with hooks on what is saved."""


def checkpoint_layers(model: nn.Module) -> None:
    """Switch it on for all layers but one that is computed for a single token, of which there is little to keep.

    Raises:
        ModelError: transformers does not offer it for this model.
    """
    networks = outermost_networks(model)
    for network in networks:
        if not getattr(network, "supports_gradient_checkpointing", False):
            raise ModelError(
                f"gradient_checkpointing: transformers does not offer it for {type(network).__name__}; leave it out, or use a "
                "smaller batch_size with a larger accumulate."
            )
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs=NOT_REENTRANT)
        network.disable_input_require_grads()  # which only the other kind needs, and frozen embeddings would get gradients
    for module in model.modules():
        if isinstance(module, ReadTokenLayer):
            vars(module)["gradient_checkpointing"] = False
