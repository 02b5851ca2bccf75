"""Focal loss: examples that are already right count less. Stable however sure the model is, by itself and in a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from fairtune.core.errors import DataError, ModelError
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import ALLOWED, Forms, all_equal, in_words, one_problem, problem, resolved
from fairtune.methods.config import MethodConfig
from fairtune.methods.losses import in_single
from fairtune.methods.registry import register
from fairtune.settings.values import Number

if TYPE_CHECKING:
    from torch import Tensor


Alpha = Annotated[
    Annotated[Number, Field(ge=0, le=1)] | Forms | None, one_problem(f"null, a number from 0 to 1, {ALLOWED}")
]


class FocalConfig(MethodConfig):
    """Count examples less the surer the model already is of their class (focal loss), in place of cross entropy."""

    gamma: Number = Field(
        2.0, ge=0, le=1e6, description="How much less: an example counts (1 - p)^gamma; 0 is plain cross entropy."
    )
    alpha: Alpha = Field(
        None,
        description="Weight of each class as well: a number weights two classes differently, the second by alpha and the first by "
        "1 - alpha (0.25: second .25, first .75); or a list in the order of the labels, a mapping by label, or balanced (from the "
        "training examples of each); null weights classes alike. A scalar that multiplies the whole loss, as in the published "
        "title classifier, is a list: [0.25, 0.25].",
    )

    @property
    def idle(self) -> bool:
        return self.gamma == 0 and self.alpha is None

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        if self.alpha is None or (isinstance(self.alpha, float) and len(labels) == 2):
            return None
        if isinstance(self.alpha, float):
            return (
                f"alpha is the number {self.alpha:g}, the weight of the second of two classes, but the task has {len(labels)} "
                "classes; give a list of weights, a mapping by label, or balanced."
            )
        return problem(self.alpha, labels, "alpha")

    def explained(self, labels: Sequence[str]) -> str | None:
        if self.alpha is None:
            return None
        weights = (1 - self.alpha, self.alpha) if isinstance(self.alpha, float) else self.alpha
        same = ": a constant factor" if all_equal(weights) else ""
        return f"alpha: {in_words(weights, labels)}{same}"


class FocalLoss:
    """Mean over a batch of -alpha (1 - p)^gamma log p, where p is the probability of an example's own class.

    With d, how far the other classes together are above the right one, p = sigmoid(-d) and 1 - p = sigmoid(d). So nothing is
    taken from 1, and value and gradient stay exact at both ends, also for gamma below 1, where (1 - p)^gamma is steep at p = 1.

    Args:
        gamma: 0 or more; 0 is cross entropy.
        alpha: weights of the classes; a number is that of class 1 of two, and class 0 gets 1 - alpha; None weighs all alike.
    """

    def __init__(self, gamma: float = 2.0, alpha: float | Sequence[float] | None = None) -> None:
        if not (math.isfinite(gamma) and gamma >= 0):
            raise ModelError(f"gamma is {gamma}; allowed is a number of at least 0 (0 is cross entropy)")
        if isinstance(alpha, int | float):
            alpha = (1 - alpha, alpha)
        if alpha is not None and not all(math.isfinite(weight) and weight >= 0 for weight in alpha):
            raise ModelError(f"alpha is {list(alpha)}; allowed is a number from 0 to 1, or weights of 0 or more")
        self.gamma, self.alpha = gamma, alpha

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of logits, [batch, classes], and labels from 0, [batch]."""
        from torch.nn.functional import logsigmoid, one_hot

        logits = in_single(logits)
        own = one_hot(labels, logits.shape[1]).bool()
        others = logits.masked_fill(own, -math.inf).logsumexp(1)
        d = others - logits.gather(1, labels[:, None])[:, 0]
        each = -logsigmoid(-d) * (self.gamma * logsigmoid(d)).exp()
        if self.alpha is not None:
            if len(self.alpha) != logits.shape[1]:
                raise DataError(
                    f"{len(self.alpha)} weights were given, but the logits are of {logits.shape[1]} classes."
                )
            each = each * each.new_tensor(self.alpha)[labels]
        return each.mean()


@register
class Focal(Method):
    name, config_class = "focal", FocalConfig
    excludes = frozenset({"loss"})
    kinds = ("classify",)
    config: FocalConfig

    def begin(self, data: TrainingData) -> None:
        alpha = self.config.alpha
        by_class = alpha if alpha is None or isinstance(alpha, float) else resolved(alpha, data)
        self._loss = FocalLoss(self.config.gamma, by_class)

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        return None if self.config.idle else self._loss(outputs.logits, batch["labels"])
