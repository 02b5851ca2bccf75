"""Logits and labels as losses take them: checked, and in single precision at least."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtune.core.errors import DataError


def of_batch(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits of a batch, [batch, classes], in single precision where they were in half: a loss is small numbers.

    Raises:
        DataError: they do not go with the labels, [batch].
    """
    if logits.ndim != 2 or labels.ndim != 1 or len(logits) != len(labels):
        raise DataError(
            f"logits are {list(logits.shape)} and labels {list(labels.shape)}; a loss of classes takes [batch, classes] and "
            "[batch]."
        )
    return in_single(logits)


def in_single(logits: Tensor) -> Tensor:
    """Half precision made single; single and double as they are."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def weights_of(weights: tuple[float, ...], logits: Tensor) -> Tensor:
    """The weight of each class beside its logits.

    Raises:
        DataError: there are not as many as classes.
    """
    if len(weights) != logits.shape[1]:
        raise DataError(f"{len(weights)} weights were given, but the logits are of {logits.shape[1]} classes.")
    return logits.new_tensor(weights)
