"""R-Drop's parts: a doubled batch, and the divergence between what its halves became."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtune.core.errors import DataError
from fairtune.methods.logits import in_single, of_batch


def twice(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A batch with all its examples once more behind them: every tensor that has as many rows as `labels`."""
    rows = len(batch["labels"])
    return {name: torch.cat([t, t]) if t.ndim and len(t) == rows else t for name, t in batch.items()}


def divergence(logits: Tensor) -> Tensor:
    """Mean over examples of (KL(p || q) + KL(q || p)) / 2, p and q from the halves of a doubled batch's logits.

    Gradients go into both halves, as published.
    """
    log_p, log_q = halves(logits).log_softmax(-1).unbind()
    each = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    return each.mean() / 2


def rdrop_loss(
    logits: Tensor,
    labels: Tensor,
    alpha: float = 1.0,
    loss: Callable[[Tensor, Tensor], Tensor] = cross_entropy,
) -> Tensor:
    """The mean loss over both passes, and alpha times their divergence.

    Args:
        logits: of a batch that `twice` doubled, [2 x batch, classes].
        labels: of the doubled batch.
        loss: mean of a batch's logits and labels.
    """
    logits = of_batch(logits, labels)
    return loss(logits, labels) + alpha * divergence(logits)


def halves(logits: Tensor) -> Tensor:
    """The first and the second pass, [2, batch, classes], in single precision at least.

    Raises:
        DataError: the number of rows is odd.
    """
    if logits.ndim != 2 or len(logits) % 2:
        raise DataError(f"logits are {list(logits.shape)}; those of a doubled batch are [2 x batch, classes].")
    return in_single(logits).reshape(2, len(logits) // 2, -1)
