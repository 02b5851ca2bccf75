"""A method's settings, and a method as an arm lists it. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from fairtune.core.errors import FairtuneError


class MethodConfig(BaseModel):
    """The settings of a method. Subclasses document the class (the method's help) and every field."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def read(cls, settings: Mapping[str, Any], caller: str) -> Self:
        """Settings that a program gives to a function.

        Raises:
            FairtuneError: they are not allowed; the message begins with the caller's name.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            reasons = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors())
            raise FairtuneError(f"{caller}: {reasons}. Fields: {', '.join(cls.model_fields)}.") from None

    @property
    def idle(self) -> bool:
        """Whether with these settings the method only looks on: the arm is then a control for arms in which it acts."""
        return False

    def control_for(self, acting: MethodConfig) -> bool:
        """Whether this, which is idle, leaves everything as `acting` has it but for the effect under test."""
        return self.idle and self == acting

    def control_lr(self, lr: float) -> float:
        """The learning rate that a control needs: the run's, or the nearest at which something trains where nothing has that."""
        return lr

    @property
    def step_factor(self) -> float:
        """How many times as long a step takes with the method, counted in passes through the model."""
        return 1.0

    @property
    def freezes(self) -> frozenset[str]:
        """Which of `embeddings` and `projections` (query and key) do not train with these settings, for methods that need them."""
        return frozenset()

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:  # noqa: ARG002
        """Why the method cannot work with those before and after it in its arm, where `excludes` does not say it; else None."""
        return None

    def data_problem(self, examples: int, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        """Why the method cannot work with so many training examples of these classes; None if it can."""
        return None

    def explained(self, labels: Sequence[str]) -> str | None:  # noqa: ARG002
        """What the settings mean for a task with these classes, as a phrase for plan and report; None where they say it."""
        return None


@dataclass(frozen=True)
class MethodUse:
    """A method as an arm lists it: its name and its settings."""

    name: str
    config: MethodConfig

    def as_json(self) -> dict[str, Any]:
        return {self.name: self.config.model_dump(mode="json")}
