"""A loss of logits and labels as `compute_loss_func` of transformers' `Trainer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor


def trainer_loss(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """What `Trainer(compute_loss_func=...)` takes, made of a mean loss of a batch's logits and labels.

    With accumulation, each batch counts by its examples, as in a study: `Trainer` leaves that to the function.
    """

    def computed(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs.logits
        mean = loss(logits, labels)
        return mean if num_items_in_batch is None else mean * (len(labels) / num_items_in_batch)

    return computed
