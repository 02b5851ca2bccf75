"""What losses of classes share: single precision, and their form for transformers' `Trainer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def in_single(logits: Tensor) -> Tensor:
    """Half precision made single, since a loss is small numbers; single and double as they are."""
    return logits.float() if logits.element_size() < 4 else logits


def trainer_loss(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """What `Trainer(compute_loss_func=...)` takes, made of a mean loss of a batch's logits and labels.

    With accumulation, each batch counts by its examples, as in a study: `Trainer` leaves that to the function.
    """

    def computed(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs.logits
        mean = loss(logits, labels)
        return mean if num_items_in_batch is None else mean * (len(labels) / num_items_in_batch)

    return computed
