"""Few labels: so many training examples of each class, drawn once for all seeds or anew for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from fairtune.settings.values import MOST_STEPS, Count, Section, Whole


class FewLabels(Section):
    """A sample with equally many examples of each class."""

    per_class: Count
    """Examples of each class."""
    resample: Literal["seed"] | None = None
    """seed: each seed draws its own sample, which all arms of that seed share, so that intervals and verdicts count the luck of the
    sample; null: all seeds train on the same one, and they do not."""


Examples = Annotated[Whole, Field(ge=2, le=MOST_STEPS)] | FewLabels
"""How many training examples are used: a number of them, or a number of each class."""


def is_resampled(examples: Any) -> bool:
    """Whether each seed draws its own sample."""
    return (few := few_labels(examples)) is not None and few.resample == "seed"


def few_labels(examples: Any) -> FewLabels | None:
    """The setting `examples`, as it is or as a plan has it, where it counts by class."""
    return FewLabels.model_validate(examples) if isinstance(examples, Mapping | FewLabels) else None


def examples_used(examples: Any, rows: int, classes: int) -> int:
    """How many of so many training examples the setting uses, as it is or as a plan has it."""
    few = few_labels(examples)
    asked = examples if few is None else few.per_class * classes
    return rows if asked is None else min(rows, asked)


@dataclass(frozen=True)
class SharedSample:
    """A training sample that arms share.

    Args:
        text: a sentence that names it, without its first capital and its full stop.
        resampled: whether each seed draws its own.
    """

    text: str
    resampled: bool

    @property
    def sentence(self) -> str:
        return f"{self.text[0].upper()}{self.text[1:]}."


def shared_samples(by_arm: Mapping[str, Any], rows: int, classes: int) -> tuple[SharedSample, ...]:
    """The training samples of a study, from the setting `examples` of each arm; none where all arms train on everything."""
    alike: dict[SharedSample, list[str]] = {}
    for arm, examples in by_arm.items():
        few, used = few_labels(examples), examples_used(examples, rows, classes)
        text = f"all seeds train on the same {used:,} of {rows:,} examples" if used < rows else ""
        if few is not None:
            owner = "each seed trains on its own" if few.resample else "all seeds train on the same"
            each = f"{few.per_class:,} example{'s' if few.per_class > 1 else ''} per class"
            text = f"{owner} {each} ({classes:,} classes, {used:,} in all)"
        alike.setdefault(SharedSample(text, is_resampled(examples)), []).append(arm)
    if len(alike) == 1:
        return tuple(SharedSample(f"{one.text}, shared by all arms", one.resampled) for one in alike if one.text)
    names = {one: f"arm{'s' if len(arms) > 1 else ''} {', '.join(arms)}" for one, arms in alike.items()}
    return tuple(SharedSample(f"{one.text} ({names[one]})", one.resampled) for one in alike if one.text)
