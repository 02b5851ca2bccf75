"""Weights of classes: `balanced`, a list in the order of the labels, or a mapping by label name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, WithJsonSchema

from fairtune.errors import nearest, one_of

if TYPE_CHECKING:
    from fairtune.methods.base import TrainingData

BALANCED: Literal["balanced"] = "balanced"
SHOWN = 20
"""Labels that a message lists; a task may have hundreds."""


def _named(value: Any) -> Any:
    """A mapping with its labels as text, as tasks have them: 0 and 1 may stand for '0' and '1'."""
    if not isinstance(value, Mapping):
        return value
    named = {str(label): weight for label, weight in value.items()}
    if len(named) < len(value):
        raise ValueError("the mapping has one label twice, once as a number and once as a text; keep one of them")
    return named


Weight = Annotated[float, Strict(), Field(gt=0)]
Balanced = Annotated[
    Literal["balanced"], WithJsonSchema({"type": "string", "enum": [BALANCED]})
]  # an enum, from which messages take the nearest spelling
WeightList = Annotated[tuple[Weight, ...], Field(min_length=1)]
WeightMapping = Annotated[dict[str, Weight], BeforeValidator(_named), Field(min_length=1)]
ClassWeights = Balanced | WeightList | WeightMapping


def problem(weights: ClassWeights, labels: Sequence[str], called: str = "weights") -> str | None:
    """Why the weights do not fit a task's labels; None if they do.

    Args:
        called: the setting that they were given as.
    """
    if weights == BALANCED:
        return None
    if not isinstance(weights, Mapping):
        if len(weights) == len(labels):
            return None
        return (
            f"{called} has {_counted(len(weights), 'number')}, but the task has {_counted(len(labels), 'class', 'es')}; "
            f"give one for each, in this order: {_listed(labels)}."
        )
    unknown = [name for name in weights if name not in labels]
    missing = [name for name in labels if name not in weights]
    told = []
    if unknown:
        hint = nearest(unknown[0], missing)
        told.append(f"{called} names {_quoted(unknown)}, which the task does not have.{hint}")
    if missing:
        told.append(f"{called} has nothing for {_quoted(missing)}; give each of the task's labels a weight.")
    return f"{' '.join(told)} Its labels are: {_listed(labels)}." if told else None


def resolved(weights: ClassWeights, data: TrainingData) -> list[float]:
    """The weight of each class, in the order of the labels."""
    if isinstance(weights, str):
        return balanced(data.counts)
    if isinstance(weights, Mapping):
        return [float(weights[label]) for label in data.labels]
    return [float(weight) for weight in weights]


def balanced(counts: Sequence[int]) -> list[float]:
    """Weights that give every class the same total: n / (classes x count), as scikit-learn has them.

    A class without a training example is not counted as one and gets 1, which no example ever uses.
    """
    present = sum(count > 0 for count in counts)
    return [sum(counts) / (present * count) if count else 1.0 for count in counts]


def all_equal(weights: ClassWeights | Sequence[float]) -> bool:
    """Whether the weights are known to be the same for every class, so that they tell none from another."""
    values = weights.values() if isinstance(weights, Mapping) else weights
    return weights != BALANCED and len(set(values)) == 1


def _counted(number: int, word: str, plural: str = "s") -> str:
    return f"{number} {word}{'' if number == 1 else plural}"


def _quoted(names: Sequence[str]) -> str:
    return _listed([f"'{name}'" for name in names])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return one_of(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
