"""Floating point operations of a training pass, and what freezing saves of them, of gradients and of optimizer state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from fairtune.models.model_parts import Batch, cuda_of, measuring

MOMENTS = 2
"""Tensors that AdamW keeps for each trainable one."""


@dataclass(frozen=True)
class Flops:
    """Floating point operations of the matrix products of one training pass over a batch, elementwise work not counted."""

    forward: int
    backward: int
    tokens: int

    @property
    def total(self) -> int:
        return self.forward + self.backward


def count_flops(model: nn.Module, batch: Batch) -> Flops:
    """Count with torch's flop counter; attention is computed eagerly, so that its products are seen. Leaves no gradient."""
    with measuring(model), torch.random.fork_rng(devices=cuda_of(model)):
        with FlopCounterMode(display=False) as forward:
            loss = model(**batch).loss
        with FlopCounterMode(display=False) as backward:
            loss.backward()
    for parameter in model.parameters():
        parameter.grad = None
    return Flops(forward.get_total_flops(), backward.get_total_flops(), batch["input_ids"].numel())


def describe_costs(model: nn.Module, before: Flops | None, now: Flops | None) -> dict[str, Any]:
    """Bytes that frozen parameters save, and from the matrix products the bound on the speed-up of forward and backward."""
    frozen = sum(p.numel() * p.element_size() for p in model.parameters() if not p.requires_grad)
    trained = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    costs: dict[str, Any] = {
        "gradient_bytes": trained,
        "gradient_bytes_saved": frozen,
        "optimizer_bytes": MOMENTS * trained,
        "optimizer_bytes_saved": MOMENTS * frozen,
    }
    if before is not None and now is not None:
        costs |= {
            "flops_per_token": _per_token(now),
            "checkpoint_flops_per_token": _per_token(before),
            "speedup_bound": before.total / now.total,
        }
    return costs


def _per_token(flops: Flops) -> dict[str, float]:
    return {"forward": flops.forward / flops.tokens, "backward": flops.backward / flops.tokens}
