"""`fgm` and `pgd`: a perturbation found by steps up the loss, and a pass that learns from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from fairtune.methods.adversarial.balls import Ball
from fairtune.methods.adversarial.config import AscentConfig
from fairtune.methods.adversarial.places import Outputs, Pass, Place, Table, table_of
from fairtune.methods.base import Method, ParamGroup
from fairtune.models.model_parts import token_embeddings


class Ascending(Method):
    config: AscentConfig

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        """Refuse, now that all methods have prepared it, a model that has no token embeddings, or frozen ones to be moved."""
        if not self.config.idle:
            embeddings = token_embeddings(model)
            if self.config.target == "table":
                table_of(embeddings)
        return groups

    def around_backward(self, step: Pass, proceed: Callable[[], Tensor]) -> Tensor:
        if self.config.idle:
            return proceed()
        place = (Table if self.config.target == "table" else Outputs)(step, token_embeddings(step.model))
        if not self.config.clean:
            with place.applied(lambda: self._found(place, None)):
                return proceed()
        with place.watched() as gradient:
            loss = proceed()
        delta = self._found(place, gradient())
        with place.applied(lambda: delta):
            step.backward(step.forward())
        return loss

    def _found(self, place: Place, gradient: Tensor | None) -> Tensor:
        """Where the steps lead.

        Args:
            gradient: without a perturbation, where it is known from a pass that was made anyway.
        """
        ball, (steps, size) = Ball(self.config.epsilon, self.config.norm), self.config.ascent
        delta = ball.moved(None, place.gradient(None) if gradient is None else gradient, size)
        for _ in range(steps - 1):
            delta = ball.moved(delta, place.gradient(delta), size)
        return delta
