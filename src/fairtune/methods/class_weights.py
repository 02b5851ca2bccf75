"""Weights of classes: `balanced`, a list in the order of the labels, or a mapping by label name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from fairtune.core.errors import nearest, one_of, shown
from fairtune.settings.values import MOST_CLASSES, Number

if TYPE_CHECKING:
    from fairtune.methods.base import TrainingData

SHOWN = 20
"""Labels that a message lists; a task may have hundreds."""
Weight = Annotated[Number, Field(ge=1e-9, le=1e9)]
"""Outside of these a batch's sum of weights is 0 or infinite in the arithmetic of training."""
Label = Annotated[str, BeforeValidator(str)]
"""As tasks have them, so 0 may stand for '0'."""
LIST, MAPPING = "a list of numbers above 0 in the order of the labels", "a mapping from each label to a number above 0"
ALLOWED = (
    "balanced, a list of numbers from 1e-9 to 1e9 in the order of the labels, or a mapping from each label to such a number, "
    f"at most {MOST_CLASSES:,} of them"
)


def one_problem(allowed: str) -> WrapValidator:
    """One sentence on what fits none of several forms, where pydantic has one for each form."""

    def read(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            hint = nearest(value, ["balanced"]) if isinstance(value, str) else ""
            raise ValueError(f"found {shown(value)}; allowed: {allowed}.{hint}") from None

    return WrapValidator(read)


Forms = (
    Literal["balanced"]
    | Annotated[tuple[Weight, ...], Field(min_length=1, max_length=MOST_CLASSES, title=LIST)]
    | Annotated[dict[Label, Weight], Field(min_length=1, max_length=MOST_CLASSES, title=MAPPING)]
)
ClassWeights = Annotated[Forms, one_problem(ALLOWED)]
Weights = Literal["balanced"] | tuple[float, ...] | dict[str, float]


def problem(weights: Weights, labels: Sequence[str], called: str = "weights") -> str | None:
    """Why the weights do not fit a task's labels; None if they do.

    Args:
        called: the setting that they were given as.
    """
    if isinstance(weights, str):
        return None
    wrong = ""
    if isinstance(weights, Mapping):
        missing = [name for name in labels if name not in weights]
        if unknown := [name for name in weights if name not in labels]:
            wrong = (
                f"{called} names {one_of(unknown, SHOWN)}, which the task does not have.{nearest(unknown[0], missing)} "
            )
        if missing:
            wrong += f"{called} has nothing for {one_of(missing, SHOWN)}; give each of the task's labels a weight. "
    elif len(weights) != len(labels):
        wrong = (
            f"{called} has length {len(weights)}, but the task has {len(labels)} classes; give one number for each. "
        )
    return f"{wrong}The labels are: {one_of(labels, SHOWN)}." if wrong else None


def resolved(weights: Weights, data: TrainingData) -> list[float]:
    """The weight of each class, in the order of the labels."""
    if isinstance(weights, str):
        return balanced(data.counts)
    if isinstance(weights, Mapping):
        return [weights[label] for label in data.labels]
    return list(weights)


def in_words(weights: Weights, labels: Sequence[str]) -> str:
    """What each class counts, by its name."""
    if isinstance(weights, str):
        return "every class has the same total weight"
    values = [weights[label] for label in labels] if isinstance(weights, Mapping) else weights
    if all_equal(weights):
        return f"{'both classes' if len(labels) == 2 else 'every class'} {values[0]:g}"
    return one_of([f"{label} {weight:g}" for label, weight in zip(labels, values, strict=True)], SHOWN)


def balanced(counts: Sequence[int]) -> list[float]:
    """Weights that give every class the same total: n / (classes x count), as scikit-learn has them.

    A class without a training example is not counted as one and gets 1, which no example ever uses.
    """
    present = sum(count > 0 for count in counts)
    return [sum(counts) / (present * count) if count else 1.0 for count in counts]


def all_equal(weights: Weights | Sequence[float]) -> bool:
    """Whether the weights are known to be the same for every class, so that they tell none from another."""
    values = weights.values() if isinstance(weights, Mapping) else weights
    return weights != "balanced" and len(set(values)) == 1
