"""What training a model costs beside training all of the checkpoint: matrix products, gradients, optimizer state."""

from __future__ import annotations

from typing import Any

from torch import nn

from fairtune.models.attention_geometry import Before
from fairtune.models.probing import Batch, Flops, count_flops

MOMENTS = 2
"""Tensors that AdamW keeps for each trainable one."""


def describe_costs(model: nn.Module, before: Before, batch: Batch | None = None) -> dict[str, Any]:
    """Bytes that frozen parameters save, and from the matrix products the bound on the speed-up of forward and backward."""
    frozen = sum(p.numel() * p.element_size() for p in model.parameters() if not p.requires_grad)
    trained = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    costs: dict[str, Any] = {
        "gradient_bytes": trained,
        "gradient_bytes_saved": frozen,
        "optimizer_bytes": MOMENTS * trained,
        "optimizer_bytes_saved": MOMENTS * frozen,
    }
    if batch is not None and before.flops is not None:
        now = count_flops(model, batch)
        costs |= {
            "flops_per_token": _per_token(now),
            "checkpoint_flops_per_token": _per_token(before.flops),
            "speedup_bound": before.flops.total / now.total,
        }
    return costs


def _per_token(flops: Flops) -> dict[str, float]:
    return {"forward": flops.forward / flops.tokens, "backward": flops.backward / flops.tokens}
