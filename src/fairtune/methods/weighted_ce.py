"""Weighted cross entropy: some classes count more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from fairtune.core.errors import ModelError
from fairtune.methods.base import Batch, Method, TrainingData
from fairtune.methods.class_weights import ClassWeights, all_equal, in_words, problem, resolved
from fairtune.methods.config import MethodConfig
from fairtune.methods.losses import in_single
from fairtune.methods.registry import register

if TYPE_CHECKING:
    from torch import Tensor


class WeightedCEConfig(MethodConfig):
    """Count the examples of some classes more than those of others (weighted cross entropy)."""

    weights: ClassWeights = Field(
        "balanced",
        description="Weight of each class: a list in the order of the labels, a mapping by label, or balanced (n / (classes x "
        "training examples of the class)). A batch's loss is divided by the sum of its weights.",
    )

    @property
    def idle(self) -> bool:
        return all_equal(self.weights)

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        return problem(self.weights, labels)

    def explained(self, labels: Sequence[str]) -> str | None:
        return f"weights: {in_words(self.weights, labels)}{': plain cross entropy' if self.idle else ''}"


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Sequence[float]) -> Tensor:
    """sum(w l) / sum(w) over a batch, as `torch.nn.CrossEntropyLoss(weight)` has it, in single precision.

    Args:
        weights: one for each class, above 0.
    """
    from torch.nn.functional import cross_entropy

    if not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise ModelError(f"weights are {list(weights)}; allowed are numbers above 0")
    logits = in_single(logits)
    return cross_entropy(logits, labels, weight=logits.new_tensor(weights))


@register
class WeightedCE(Method):
    name, config_class = "weighted_ce", WeightedCEConfig
    needs = frozenset({"whole_batch"})  # halves have other sums of weights to divide by
    excludes = frozenset({"loss"})
    kinds = ("classify",)
    toy: ClassVar = {"weights": [1, 1.3]}  # its classes are balanced
    config: WeightedCEConfig

    def begin(self, data: TrainingData) -> None:
        self._weights = resolved(self.config.weights, data)

    def loss(self, outputs: Any, batch: Batch) -> Tensor | None:
        if all_equal(self._weights):  # also when balanced classes are to be balanced
            return None
        return weighted_cross_entropy(outputs.logits, batch["labels"], self._weights)
