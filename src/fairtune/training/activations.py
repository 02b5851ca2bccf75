"""GPT-2's GELU in one kernel. transformers writes it out as many, each a pass over the widest tensor that there is."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers.activations import NewGELUActivation


class FastGELU(nn.Module):
    """The same formula, GELU by its tanh approximation, computed by torch's own kernel."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.nn.functional.gelu(input, approximate="tanh")


def use_fast_gelu(model: nn.Module) -> None:
    """Let every written-out GELU of a model be computed the fast way; its weights and its structure stay as they are."""
    for module in model.modules():
        if type(module) is NewGELUActivation:
            module.__class__ = FastGELU
