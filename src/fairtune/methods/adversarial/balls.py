"""Steps up a loss that stay in a ball, for each row of a tensor by itself. All in fp32, whatever the gradients are in."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairtune.methods.adversarial.config import Norm


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

    def somewhere(self, real: Tensor, width: int) -> Tensor:
        """A random place in the ball, [rows, length, width], as FreeLB starts; drawn for real tokens only.

        So padding draws nothing, and a batch in two halves draws what it draws in one. Of l2 each entry is uniform within
        epsilon / sqrt(entries), as published; of linf within epsilon.

        Args:
            real: which tokens are no padding, [rows, length].
        """
        draws = torch.rand(int(real.sum()), width, device=real.device) * 2 - 1
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
    """One value a row, shaped to go with all entries of the row."""
    return values.view(-1, *[1] * (like.ndim - 1))
