"""A method's settings, and a method as an arm lists it. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class MethodConfig(BaseModel):
    """The settings of a method. Subclasses document the class (the method's help) and every field."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    freezes_embeddings: ClassVar[bool] = False
    """Whether the token embeddings do not train with it, so that no other method can follow their gradient."""
    wraps_model: ClassVar[bool] = False
    """Whether what it prepares is a wrapper around the model, whose head others can no longer replace."""
    rewrites_projections: ClassVar[bool] = False
    """Whether it gives the attention's query and key projections new weights, so that adapters must come after it."""

    @property
    def freezes_projections(self) -> bool:
        """Whether the query and key projections do not train with these settings, so that they can have no adapters."""
        return False

    @property
    def idle(self) -> bool:
        """Whether with these settings the method only looks on: the arm is then a control for arms in which it acts."""
        return False

    def control_for(self, acting: MethodConfig) -> bool:
        """Whether this, which is idle, leaves everything as `acting` has it but for the effect under test."""
        return self.idle and self == acting

    @property
    def whole_batch(self) -> str | None:
        """Why a batch must go through the model in one piece with these settings, as half a sentence; None if it may be cut.

        A batch is cut where memory is short, and where several devices share it. What `loss` and `penalty` give of the parts
        is then averaged: a penalty by examples, a loss by what `Method.weight` says. A method of somebody else's says by this
        property whether that is the whole batch's gradient; until it does, its arms are not cut.
        """
        if type(self).__module__.startswith("fairtune.methods."):
            return None
        return (
            f"{type(self).__name__} does not say whether a batch may be cut into parts (its property `whole_batch`, see "
            "docs/plugins.md)"
        )

    @property
    def one_process(self) -> str | None:
        """Why several devices cannot share a run with these settings, as half a sentence; None if they can."""
        return self.whole_batch

    @property
    def whole_weights(self) -> str | None:
        """Why every device must hold all weights with these settings, as half a sentence; None if they may be divided.

        A method that reads or writes parameters once training has begun needs them whole; one that only prepares the model or
        changes the loss does not. A method of somebody else's says so by this property; until it does, its arms are not divided.
        """
        if type(self).__module__.startswith("fairtune.methods."):
            return None
        return (
            f"{type(self).__name__} does not say whether weights may be divided (its property `whole_weights`, see "
            "docs/plugins.md)"
        )

    def control_lr(self, lr: float) -> float:
        """The learning rate that a control needs: the run's, or the nearest at which something trains where nothing has that."""
        return lr

    @property
    def step_factor(self) -> float:
        """How many times as long a step takes with the method, counted in passes through the model."""
        return 1.0

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:  # noqa: ARG002
        """Why the method cannot work with the others of its arm before and after it, where claims do not say it; None if it can."""
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
