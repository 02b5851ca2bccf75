"""The pull of a map's prototypes on hidden activations, put into the gradient on its way back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def pulled(z: Tensor, used: Tensor, pull: Tensor, alpha: float) -> Tensor:
    """The pre-activations as they are; on the way back the rows in use get (1 - alpha) of their gradient, and the pull.

    Args:
        used: which rows, [batch]; the gradient of the others is not touched.
        pull: what is added to a row's gradient, [batch, units]; descent goes against it.
    """
    same: Tensor = _Pull.apply(z, used, pull.to(z.dtype), alpha)  # type: ignore[no-untyped-call]
    return same


class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, used: Tensor, pull: Tensor, alpha: float) -> Tensor:
        ctx.save_for_backward(used, pull)
        ctx.alpha = alpha
        return z.view_as(z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        used, pull = ctx.saved_tensors
        return torch.where(used[:, None], (1 - ctx.alpha) * gradient + pull, gradient), None, None, None
