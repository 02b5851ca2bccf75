"""What losses of classes share: logits and labels checked, in single precision at least; and a loss for transformers' `Trainer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fairtune.core.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor


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
    return logits.float() if logits.element_size() < 4 else logits


def weights_of(weights: Sequence[float], logits: Tensor) -> Tensor:
    """The weight of each class beside its logits.

    Raises:
        DataError: there are not as many as classes.
    """
    if len(weights) != logits.shape[1]:
        raise DataError(f"{len(weights)} weights were given, but the logits are of {logits.shape[1]} classes.")
    return logits.new_tensor(weights)


def trainer_loss(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """What `Trainer(compute_loss_func=...)` takes, made of a mean loss of a batch's logits and labels.

    With accumulation, each batch counts by its examples, as in a study: `Trainer` leaves that to the function.
    """

    def computed(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs.logits
        mean = loss(logits, labels)
        return mean if num_items_in_batch is None else mean * (len(labels) / num_items_in_batch)

    return computed
