"""How a model computes its attention: torch's fused kernels, product by product, or by the package flash-attn."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import is_flash_attn_2_available

from fairtune.core.errors import ModelError
from fairtune.models.transformers_files import explain_failure

NAMES = {"sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}
"""A study's words, and transformers'."""


def use_kernel(model: nn.Module, kernel: str | None, device: torch.device) -> None:
    """Let a model compute its attention so; None leaves it as it is.

    Raises:
        ModelError: the model, the device or what is installed does not allow it.
    """
    if kernel is None:
        return
    if kernel == "flash":
        require_flash(device)
    for network in outermost_networks(model):
        what = f"attention_kernel: {kernel} does not work for {type(network).__name__}"
        with explain_failure(what):
            network.set_attn_implementation(NAMES[kernel])
        chosen = getattr(network.config, "_attn_implementation", None)
        if chosen != NAMES[kernel]:
            raise ModelError(f"{what}, which computes attention in a way of its own; leave it out.")


def require_flash(device: torch.device) -> None:
    """Refuse flash-attn where it cannot be."""
    if device.type != "cuda":
        raise ModelError(
            f"attention_kernel: flash needs a GPU, and this run is on {device.type}; use sdpa, or leave it out."
        )
    if not is_flash_attn_2_available():
        raise ModelError(
            "attention_kernel: flash needs the package flash-attn, which is not installed; use sdpa, or install it."
        )


def outermost_networks(model: nn.Module) -> list[Any]:
    """The transformers models in a model that are in no other: itself, or what a method or a library wrapped."""
    if isinstance(model, PreTrainedModel):
        return [model]
    return [network for child in model.children() for network in outermost_networks(child)]
