"""Weighted cross entropy: some classes count more."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from fairtune.methods.class_weights import ClassWeights, all_equal, in_words, problem
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register


class WeightedCEConfig(MethodConfig):
    """Count the examples of some classes more than those of others (weighted cross entropy)."""

    weights: ClassWeights = Field(
        "balanced",
        description="Weight of each class: a list in the order of the labels, a mapping by label, or balanced (n / (classes x "
        "training examples of the class)). A batch's loss is divided by the sum of its weights.",
    )

    @property
    def idle(self) -> bool:
        """Equal weights cancel out."""
        return all_equal(self.weights)

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        return problem(self.weights, labels)

    def explained(self, labels: Sequence[str]) -> str | None:
        return f"weights: {in_words(self.weights, labels)}{': plain cross entropy' if self.idle else ''}"


register(
    "weighted_ce",
    WeightedCEConfig,
    "fairtune.methods.weighted_ce.method:WeightedCE",
    claims=["loss"],
    kinds=("classify",),
    toy={"weights": [1, 1.3]},  # its classes are balanced
)
