"""The settings of `focal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, Strict

from fairtune.methods.class_weights import ClassWeights, problem
from fairtune.methods.registry import MethodConfig

Number = Annotated[float, Strict()]


class FocalConfig(MethodConfig):
    """Count examples less the surer the model already is of their class (focal loss), in place of cross entropy."""

    gamma: Number = Field(
        2.0, ge=0, description="How much less: an example counts (1 - p)^gamma; 0 is plain cross entropy."
    )
    alpha: Annotated[Number, Field(ge=0, le=1)] | ClassWeights | None = Field(
        None,
        description="Weight of each class beside that: a number is the weight of the second of two classes (the first gets 1 - "
        "alpha); or a list in the order of the labels, a mapping by label, or balanced (from the training examples of each); "
        "null weighs classes alike.",
    )

    @property
    def idle(self) -> bool:
        """It is plain cross entropy, and leaves that to the model."""
        return self.gamma == 0 and self.alpha is None

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        if self.alpha is None:
            return None
        if isinstance(self.alpha, float):
            if len(labels) == 2:
                return None
            return (
                f"alpha is the number {self.alpha:g}, the weight of the second of two classes, but the task has {len(labels)} "
                "classes; give a list of weights, a mapping by label, or balanced."
            )
        return problem(self.alpha, labels, "alpha")
