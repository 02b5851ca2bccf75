"""AdamW, its parameter groups, the course of the learning rate, and clipping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from fairtune.core.errors import RunFailure
from fairtune.methods.base import Method, ParamGroup
from fairtune.settings.sections import Train


def parameter_groups(model: nn.Module, train: Train, methods: Sequence[Method]) -> list[ParamGroup]:
    """Trainable parameters in groups: decayed matrices, and vectors (biases, normalisation) that are not decayed.

    Raises:
        RunFailure: a method left a trainable parameter out, or listed one twice.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    groups: Sequence[ParamGroup] = [
        {"params": [p for p in trainable if p.ndim > 1], "lr": train.lr, "weight_decay": train.weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "lr": train.lr, "weight_decay": 0.0},
    ]
    for method in methods:
        groups = method.param_groups(groups, model)
    listed = [id(p) for group in groups for p in group["params"]]
    if len(listed) != len(set(listed)) or set(listed) != {id(p) for p in trainable}:
        raise RunFailure("the optimizer's groups do not hold every trainable parameter exactly once")
    return [group for group in groups if group["params"]]


def make_optimizer(groups: list[ParamGroup], train: Train, device: torch.device) -> torch.optim.AdamW:
    """AdamW; fused where the device has it. Each group remembers its peak learning rate."""
    for group in groups:
        group["peak_lr"] = group["lr"]
    return torch.optim.AdamW(groups, betas=train.betas, fused=device.type in ("cpu", "cuda", "mps"))


def set_learning_rate(optimizer: torch.optim.Optimizer, train: Train, step: int, total: int) -> float:
    """Give every group its rate for the optimizer step with this number, from 0. Returns the arm's, which groups may multiply."""
    share = schedule(train, step, total)
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * share
    return train.lr * share


def schedule(train: Train, step: int, total: int) -> float:
    """The learning rate at a step as a share of its peak: a linear warm-up from 0, then the chosen course."""
    warmup = train.warmup_steps(total)
    if step < warmup:
        return step / warmup
    if train.schedule == "constant":
        return 1.0
    done = (step - warmup) / max(1, total - warmup)
    return max(0.0, 1.0 - done) if train.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))


def apply_gradients(
    optimizer: Any,
    parameters: Sequence[nn.Parameter],
    accelerator: Accelerator,
    loss: float,
    clip: float | None,
    where: str,
) -> float:
    """Take an optimizer step with the gradients that are there, clipped, and drop them. Returns their norm before clipping.

    Args:
        where: the step, for messages.

    Raises:
        RunFailure: the loss or the gradients are not finite; a loss scaler skips such a step by itself.
    """
    accelerator.unscale_gradients()
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if not math.isfinite(loss):
        raise RunFailure(f"the loss is {loss} {where}; a lower lr or a longer warm-up may help")
    if not math.isfinite(norm) and accelerator.scaler is None:
        raise RunFailure(f"the gradient's norm is {float(norm)} {where}; a lower lr may help")
    step_clipped(optimizer, parameters, norm, clip)
    optimizer.zero_grad(set_to_none=True)
    return float(norm)


def step_clipped(
    optimizer: torch.optim.Optimizer, parameters: Sequence[nn.Parameter], norm: Tensor, largest: float | None
) -> None:
    """An optimizer step with gradients scaled down to a norm; gradients within it are not touched.

    A fused AdamW divides by the scale on its way, which saves a pass over all gradients. With a loss scaler it is the
    scaler that uses this door, so there the gradients are scaled beforehand.
    """
    if largest is None or not norm > largest:
        optimizer.step()
        return
    inner: Any = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
    if not inner.defaults.get("fused") or getattr(optimizer, "scaler", None) is not None:
        torch.nn.utils.clip_grads_with_norm_([p for p in parameters if p.grad is not None], largest, norm)
        optimizer.step()
        return
    inner.grad_scale, inner.found_inf = norm / largest, torch.zeros((), device=norm.device)
    try:
        optimizer.step()
    finally:
        del inner.grad_scale, inner.found_inf
