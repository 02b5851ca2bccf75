"""Focal loss: examples that are already right count less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from fairtune.methods.class_weights import ALLOWED, SCHEMAS, Weights, all_equal, in_words, is_number, problem, read
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import Number


def _read_alpha(value: Any) -> float | Weights | None:
    if value is None or (is_number(value) and 0 <= value <= 1):
        return None if value is None else float(value)
    return read(value, f"null, a number from 0 to 1, {ALLOWED}")


Alpha = Annotated[
    float | Weights | None,
    BeforeValidator(_read_alpha),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, *SCHEMAS, {"type": "null"}]}),
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

    def explained(self, labels: Sequence[str]) -> str | None:
        if self.alpha is None:
            return None
        weights = (1 - self.alpha, self.alpha) if isinstance(self.alpha, float) else self.alpha
        same = ": a constant factor" if all_equal(weights) else ""
        return f"alpha: {in_words(weights, labels)}{same}"


register("focal", FocalConfig, "fairtune.methods.focal.method:Focal", claims=["loss"], kinds=("classify",))
