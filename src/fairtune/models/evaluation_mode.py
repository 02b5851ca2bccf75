"""Evaluation mode for a while, and what measuring a model on a real batch needs besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.utils import logging as transformers_logging

Batch = Mapping[str, Tensor]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Afterwards each module has its own mode back, since a frozen part may not train while others do."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


@contextmanager
def measuring(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and eager attention for a while."""
    settable: Any = model
    before, training = getattr(model.config, "_attn_implementation", None), model.training
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    model.eval()
    try:
        if before not in (None, "eager"):
            settable.set_attn_implementation("eager")
        yield
    finally:
        if before not in (None, "eager"):
            settable.set_attn_implementation(before)
        transformers_logging.set_verbosity(verbosity)
        model.train(training)


def cuda_of(model: nn.Module) -> list[torch.device]:
    """The device whose generator must be kept, where the model is on a GPU."""
    device = next(model.parameters()).device
    return [device] if device.type == "cuda" else []
