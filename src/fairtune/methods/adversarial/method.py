"""`fgm`, `pgd` and `freelb`: perturbations that climb the loss inside a ball, and passes that learn from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.methods.adversarial import AscentConfig, FreeLBConfig, Norm
from fairtune.methods.adversarial.places import (
    Outputs,
    Pass,
    Place,
    Table,
    lookup,
    of_real_tokens,
    perturbed,
    real_tokens,
    table_of,
)
from fairtune.methods.base import Method, ParamGroup
from fairtune.models.model_parts import token_embeddings


@dataclass(frozen=True)
class Ball:
    """What a perturbation may be: rows that are no longer than epsilon."""

    epsilon: float
    norm: Norm

    def moved(self, delta: Tensor | None, gradient: Tensor, size: float) -> Tensor:
        """The perturbation after a step of this size up the loss, brought back into the ball.

        Args:
            delta: None is no perturbation yet.
            gradient: of the loss at the perturbation, at any scale.
        """
        step = size * directions(gradient, self.norm)
        return self.projected(step if delta is None else delta + step)

    def projected(self, delta: Tensor) -> Tensor:
        """The nearest perturbation in the ball."""
        if self.norm == "linf":
            return delta.clamp(-self.epsilon, self.epsilon)
        length = _over_rows(delta.flatten(1).norm(dim=1), delta)
        return torch.where(length > self.epsilon, delta * (self.epsilon / length), delta)

    def draw_start(self, real: Tensor, width: int, uniform: Callable[[int, int], Tensor]) -> Tensor:
        """A random place in the ball, [rows, length, width], as FreeLB starts; drawn for real tokens only.

        So padding draws nothing, and a batch in two halves draws what it draws in one. Of l2 each entry is uniform within
        epsilon / sqrt(entries), as published; of linf within epsilon.

        Args:
            real: which tokens are not padding, [rows, length].
            uniform: draws numbers from 0 to 1, so many rows of a width.
        """
        draws = uniform(int(real.sum()), width) * 2 - 1
        delta = torch.zeros(*real.shape, width, device=real.device)
        delta[real] = self.epsilon * draws
        if self.norm == "l2":
            delta /= _over_rows((real.sum(dim=1) * width).clamp(min=1).float().sqrt(), delta)
        return delta


def directions(gradient: Tensor, norm: Norm) -> Tensor:
    """Each row of a gradient at length 1; 0 for one that is zero or not finite, which says nothing of where to go."""
    gradient = gradient.float()
    largest = gradient.flatten(1).abs().amax(dim=1)
    usable = _over_rows(largest.isfinite() & (largest > 0), gradient)
    if norm == "linf":
        return gradient.sign().where(usable, 0.0)
    scaled = gradient / _over_rows(largest, gradient)  # or squares of small gradients would be 0
    return (scaled / _over_rows(scaled.flatten(1).norm(dim=1), gradient)).where(usable, 0.0)


def _over_rows(values: Tensor, like: Tensor) -> Tensor:
    """One value per row, shaped to go with all entries of the row."""
    return values.view(-1, *[1] * (like.ndim - 1))


class Ascent(Method):
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


class FreeLB(Method):
    config: FreeLBConfig

    def param_groups(self, groups: Sequence[ParamGroup], model: nn.Module) -> Sequence[ParamGroup]:
        if not self.config.idle:
            token_embeddings(model)  # a model that has none is refused before its first step
        return groups

    def around_backward(self, step: Pass, proceed: Callable[[], Tensor]) -> Tensor:
        if self.config.idle:
            return proceed()
        clean = proceed() if self.config.clean else None
        embeddings, losses = token_embeddings(step.model), []
        wandering = _MovingPerturbation(Ball(self.config.epsilon, self.config.norm), step)
        with _averaged(step.model, self.config.steps):
            for number in range(self.config.steps):
                with lookup(embeddings, wandering.perturb) as seen:
                    losses.append(proceed() if number == 0 and clean is None else _learned(step))
                if number < self.config.steps - 1:
                    wandering.move(seen.gradient, self.config.step_size)
        return torch.stack(losses).mean() if clean is None else clean


def _learned(step: Pass) -> Tensor:
    loss = step.forward()
    step.backward(loss)
    return loss.detach()


class _MovingPerturbation:
    """A batch's perturbation from pass to pass. As published, all passes have the dropout of the first."""

    def __init__(self, ball: Ball, step: Pass) -> None:
        self.ball, self.step = ball, step
        self.delta: Tensor | None = None
        self.generators: list[Tensor] = []

    def perturb(self, vectors: Tensor) -> Tensor:
        sources: list[Any] = [torch]
        if vectors.device.type != "cpu":
            sources.append(torch.get_device_module(vectors.device))
        if self.delta is None:
            real = real_tokens(self.step.batch, vectors)
            self.delta = self.ball.draw_start(real, vectors.shape[2], self.step.uniform)
            self.generators = [source.get_rng_state() for source in sources]
        else:
            for source, state in zip(sources, self.generators, strict=True):
                source.set_rng_state(state)
        return perturbed(vectors, self.delta)

    def move(self, gradient: Tensor, size: float) -> None:
        self.delta = self.ball.moved(self.delta, of_real_tokens(gradient, self.step.batch), size)


@contextmanager
def _averaged(model: nn.Module, passes: int) -> Iterator[None]:
    """What so many passes add to the gradients counts as their mean; gradients of earlier batches are left as they are.

    The gradients are divided, not the losses: what another method puts into them on their way is then averaged as well.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    before = [parameter.grad for parameter in trainable]
    for parameter in trainable:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, earlier in zip(trainable, before, strict=True):
            if parameter.grad is None:
                parameter.grad = earlier
                continue
            parameter.grad /= passes
            if earlier is not None:
                parameter.grad += earlier
