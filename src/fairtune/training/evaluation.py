"""What scoring a split gives, and the state a model is in meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import torch
from torch import nn

from fairtune.methods.base import Method


@dataclass(frozen=True)
class Evaluation:
    """What a split scored.

    Args:
        arrays: by name, a row an example: what predictions are made of.
        metrics: the figures that they make.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    metrics: dict[str, float]


@contextmanager
def scoring(model: nn.Module, methods: Sequence[Method]) -> Iterator[None]:
    """Evaluation mode without gradients, and with what the methods hold while the model is evaluated."""
    training = model.training
    with ExitStack() as stack:
        for method in methods:
            stack.enter_context(method.evaluating(model))
        stack.callback(model.train, training)
        model.eval()
        stack.enter_context(torch.inference_mode())
        yield
