"""A card made by hand: two layers of two heads, with figures that tests can recognise."""

from __future__ import annotations

from typing import Any

LAYERS, HEADS = 2, 2
FORWARD, BACKWARD, FROZEN_BACKWARD = 100e6, 200e6, 183.4e6
"""Matrix products per token; freezing queries and keys saves part of the backward pass."""


def made_card(frozen: bool, changed: bool) -> dict[str, Any]:
    """Args:
    frozen: queries and keys are orthogonalised and frozen.
    changed: some tensor differs from the checkpoint, as with any method here.
    """
    train, held = (900, 100) if frozen else (1000, 0)
    change = {"name": "layer.0.query.weight", "max_abs": 0.5, "relative": 0.58, "cosine": 0.89, "trainable": False}
    names = [f"layer.{block}.{part}.weight" for block in range(LAYERS) for part in ("query", "key")]
    return {
        "same": 7, "changed": [change] if changed else [], "new": ["head"], "unverified": [],
        "frozen": names if frozen else [],
        "parameters": {
            "trainable": train, "frozen": held, "buffers": 0, "total": 1000, "trainable_share": train / 1000,
        },
        "attention": _attention(frozen),
        "costs": _costs(train, held, FROZEN_BACKWARD if frozen else BACKWARD),
    }  # fmt: skip


def _attention(frozen: bool) -> dict[str, Any]:
    entries = [_entry(block, part, frozen) for block in range(LAYERS) for part in "qk"]
    was = [[1.5 + block, 1.7 + block] for block in range(LAYERS)]
    now = [[0.4, 0.6] for _ in range(LAYERS)] if frozen else was
    logits = [{"layer": f"attentions.{n}", "spread": now[n], "checkpoint": was[n]} for n in range(LAYERS)]
    return {"layers": entries, "logits": logits, "summary": _summary(frozen)}


def _entry(block: int, part: str, frozen: bool) -> dict[str, Any]:
    layer = f"layer.{block}.attention"
    return {
        "layer": layer, "block": block, "part": part, "module": f"{layer}.{part}", "changed": frozen, "frozen": frozen,
        "orthogonality_error": [2e-7, 4.8e-7] if frozen else [3.1, 4.2],
        "direction_error": [1e-7, 3e-7] if frozen else [0.3, 0.4],
        "row_norm": [1.0, 1.0] if frozen else [1.6, 1.8],
        "row_norm_min": [1.0, 1.0] if frozen else [1.1, 1.2],
        "row_norm_max": [1.0, 1.0] if frozen else [2.1, 2.2],
        "checkpoint_row_norm": [1.6, 1.8],
        "row_space_cosine": [1.0, 0.9] if frozen else [1.0, 1.0],
        "difference_norm": [3.0, 4.0] if frozen else [0.0, 0.0],
    }  # fmt: skip


def _summary(frozen: bool) -> dict[str, Any]:
    return {
        "projections": 4, "changed": 4 * frozen, "frozen": 4 * frozen,
        "worst_orthogonality_error": 4.8e-7 if frozen else 4.2,
        "worst_direction_error": 3e-7 if frozen else 0.4,
        "row_norm": 1.0 if frozen else 1.7, "checkpoint_row_norm": 1.7,
        "row_space_cosine": 0.95 if frozen else 1.0,
        "logit_spread": 0.5 if frozen else 2.1, "checkpoint_logit_spread": 2.1,
    }  # fmt: skip


def _costs(train: int, held: int, backward: float) -> dict[str, Any]:
    return {
        "gradient_bytes": 4 * train, "gradient_bytes_saved": 4 * held,
        "optimizer_bytes": 8 * train, "optimizer_bytes_saved": 8 * held,
        "flops_per_token": {"forward": FORWARD, "backward": backward},
        "checkpoint_flops_per_token": {"forward": FORWARD, "backward": BACKWARD},
        "speedup_bound": (FORWARD + BACKWARD) / (FORWARD + backward),
    }  # fmt: skip
