"""`freelb`: several passes over a batch, each of which also moves the perturbation of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from fairtune.methods.adversarial.balls import Ball
from fairtune.methods.adversarial.config import FreeLBConfig
from fairtune.methods.adversarial.lookups import lookup, of_real_tokens, perturbed, real_tokens
from fairtune.methods.adversarial.places import Pass
from fairtune.methods.base import Batch, Method, ParamGroup
from fairtune.models.model_parts import token_embeddings


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
        wandering = _Wandering(Ball(self.config.epsilon, self.config.norm), step.batch)
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


class _Wandering:
    """A batch's perturbation from pass to pass. As published, all passes have the dropout of the first."""

    def __init__(self, ball: Ball, batch: Batch) -> None:
        self.ball, self.batch = ball, batch
        self.delta: Tensor | None = None
        self.generators: list[Tensor] = []

    def perturb(self, vectors: Tensor) -> Tensor:
        sources: list[Any] = [torch]
        if vectors.device.type != "cpu":
            sources.append(torch.get_device_module(vectors.device))
        if self.delta is None:
            self.delta = self.ball.somewhere(real_tokens(self.batch, vectors), vectors.shape[2])
            self.generators = [source.get_rng_state() for source in sources]
        else:
            for source, state in zip(sources, self.generators, strict=True):
                source.set_rng_state(state)
        return perturbed(vectors, self.delta)

    def move(self, gradient: Tensor, size: float) -> None:
        self.delta = self.ball.moved(self.delta, of_real_tokens(gradient, self.batch), size)


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
