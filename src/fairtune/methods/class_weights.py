"""Weights of classes: `balanced`, a list in the order of the labels, or a mapping by label name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from fairtune.core.errors import nearest, one_of, shown
from fairtune.settings.values import MOST_CLASSES

if TYPE_CHECKING:
    from fairtune.methods.base import TrainingData

BALANCED: Literal["balanced"] = "balanced"
SHOWN = 20
"""Labels that a message lists; a task may have hundreds."""

Weights = Literal["balanced"] | tuple[float, ...] | dict[str, float]
LIGHTEST, HEAVIEST = 1e-9, 1e9
"""Outside of these a batch's sum of weights is 0 or infinite in the arithmetic of training."""
ALLOWED = "balanced, a list of numbers from 1e-9 to 1e9 in the order of the labels, or a mapping from each label to such a number"
_WEIGHT = {"type": "number", "minimum": LIGHTEST, "maximum": HEAVIEST}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "enum": [BALANCED]},
    {
        "type": "array",
        "items": _WEIGHT,
        "minItems": 1,
        "maxItems": MOST_CLASSES,
        "title": "a list of numbers above 0 in the order of the labels",
    },
    {
        "type": "object",
        "additionalProperties": _WEIGHT,
        "minProperties": 1,
        "maxProperties": MOST_CLASSES,
        "title": "a mapping from each label to a number above 0",
    },
]


def read(value: Any, allowed: str = ALLOWED) -> Weights:
    """Weights as a study or a program gives them; label names become text, as tasks have them, so 0 may stand for '0'.

    Read by hand, since of what fits none of several forms pydantic tells everything that is wrong with each.

    Raises:
        ValueError: they are none.
    """
    if isinstance(value, str) and value == BALANCED:
        return BALANCED
    if isinstance(value, Mapping | list | tuple) and len(value) > MOST_CLASSES:
        raise ValueError(f"found {len(value):,} weights; allowed: at most {MOST_CLASSES:,}, one for each label")
    if isinstance(value, Mapping) and value and all(map(_is_weight, value.values())):
        named = {str(label): float(weight) for label, weight in value.items()}
        if len(named) < len(value):
            raise ValueError("has one label twice, once as a number and once as a text; keep one of them")
        return named
    if isinstance(value, list | tuple) and value and all(map(_is_weight, value)):
        return tuple(map(float, value))
    hint = nearest(value, [BALANCED]) if isinstance(value, str) else ""
    raise ValueError(f"found {shown(value)}; allowed: {allowed}.{hint}")


def _is_weight(value: Any) -> bool:
    return is_number(value) and LIGHTEST <= value <= HEAVIEST


def is_number(value: Any) -> bool:
    """Whether a value is a finite number, and no truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)  # a whole number may be too large for a float


ClassWeights = Annotated[Weights, BeforeValidator(read), WithJsonSchema({"anyOf": SCHEMAS})]


def problem(weights: Weights, labels: Sequence[str], called: str = "weights") -> str | None:
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
    problems = []
    if unknown:
        hint = nearest(unknown[0], missing)
        problems.append(f"{called} names {_quoted(unknown)}, which the task does not have.{hint}")
    if missing:
        problems.append(f"{called} has nothing for {_quoted(missing)}; give each of the task's labels a weight.")
    return f"{' '.join(problems)} Its labels are: {_listed(labels)}." if problems else None


def resolved(weights: Weights, data: TrainingData) -> list[float]:
    """The weight of each class, in the order of the labels."""
    if isinstance(weights, str):
        return balanced(data.counts)
    if isinstance(weights, Mapping):
        return [float(weights[label]) for label in data.labels]
    return [float(weight) for weight in weights]


def in_words(weights: Weights, labels: Sequence[str]) -> str:
    """What each class counts, by its name."""
    if isinstance(weights, str):
        return "every class has the same total weight"
    values = [weights[label] for label in labels] if isinstance(weights, Mapping) else weights
    if all_equal(weights):
        return f"{'both classes' if len(labels) == 2 else 'every class'} {values[0]:g}"
    return _listed([f"{label} {weight:g}" for label, weight in zip(labels, values, strict=True)])


def balanced(counts: Sequence[int]) -> list[float]:
    """Weights that give every class the same total: n / (classes x count), as scikit-learn has them.

    A class without a training example is not counted as one and gets 1, which no example ever uses.
    """
    present = sum(count > 0 for count in counts)
    return [sum(counts) / (present * count) if count else 1.0 for count in counts]


def all_equal(weights: Weights | Sequence[float]) -> bool:
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
