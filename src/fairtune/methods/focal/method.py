"""`FocalLoss`, stable however sure the model is, by itself and in a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import logsigmoid, one_hot

from fairtune.core.errors import DataError, ModelError
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import resolved
from fairtune.methods.focal import FocalConfig
from fairtune.methods.losses import of_batch, weights_of


class FocalLoss(nn.Module):
    """Mean over a batch of -alpha (1 - p)^gamma log p, where p is the probability of an example's own class.

    Args:
        gamma: 0 or more; 0 is cross entropy.
        alpha: weights of the classes; a number is that of class 1 of two, and class 0 gets 1 - alpha; None weighs all alike.
    """

    def __init__(self, gamma: float = 2.0, alpha: float | Sequence[float] | None = None) -> None:
        super().__init__()
        self.gamma = gamma
        self.alpha = _per_class(alpha)
        if not (math.isfinite(gamma) and gamma >= 0):
            raise ModelError(f"gamma is {gamma}; allowed is a number of at least 0 (0 is cross entropy)")

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of logits, [batch, classes], and labels from 0, [batch]."""
        each = focal_losses(logits, labels, self.gamma)
        if self.alpha is not None:
            each = each * weights_of(self.alpha, of_batch(logits, labels))[labels]
        return each.mean()

    def extra_repr(self) -> str:
        return f"gamma={self.gamma:g}, alpha={self.alpha}"


def focal_losses(logits: Tensor, labels: Tensor, gamma: float) -> Tensor:
    """-(1 - p)^gamma log p of each example, [batch].

    With d, how far the other classes together are above the right one, p = sigmoid(-d) and 1 - p = sigmoid(d). So nothing is
    taken from 1, and value and gradient stay exact at both ends, also for gamma below 1, where (1 - p)^gamma is steep at p = 1.
    """
    logits = of_batch(logits, labels)
    if logits.shape[1] < 2:
        raise DataError(f"the logits are of {logits.shape[1]} class; a loss of classes needs at least 2.")
    own = one_hot(labels, logits.shape[1]).bool()
    others = logits.masked_fill(own, -math.inf).logsumexp(1)
    d = others - logits.gather(1, labels[:, None])[:, 0]
    return -logsigmoid(-d) * (gamma * logsigmoid(d)).exp()


def _per_class(alpha: float | Sequence[float] | None) -> tuple[float, ...] | None:
    if alpha is None:
        return None
    if isinstance(alpha, int | float):
        if not 0 <= alpha <= 1:
            raise ModelError(f"alpha is {alpha}; a number is a share from 0 to 1, else give a list of weights")
        return (1 - alpha, float(alpha))
    weights = tuple(float(weight) for weight in alpha)
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise ModelError(f"alpha is {list(weights)}; allowed are weights of 0 or more")
    return weights


class Focal(Method):
    config: FocalConfig

    def begin(self, data: TrainingData) -> None:
        alpha = self.config.alpha
        by_class = alpha if alpha is None or isinstance(alpha, float) else resolved(alpha, data)
        self._loss = FocalLoss(self.config.gamma, by_class)

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if self.config.idle:
            return None
        found: Tensor = self._loss(outputs.logits, batch["labels"])
        return found
