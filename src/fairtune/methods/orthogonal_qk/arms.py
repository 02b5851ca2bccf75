"""OELM and its controls as named arms: each isolates one thing that the published comparison confounds."""

from __future__ import annotations

from typing import Any

from fairtune.methods.arms import register_arm, register_family


def _register(name: str, settings: dict[str, Any], frozen: str, trainable: str) -> None:
    """An arm with Q and K frozen, and its twin with the same start in which they train."""
    register_arm(name, frozen, [{"orthogonal_qk": settings}])
    register_arm(f"{name}-trainable", trainable, [{"orthogonal_qk": {**settings, "freeze": False}}])


register_family("oelm")
_register(
    "freeze-pretrained",
    {"init": "keep"},
    "Q and K frozen as the checkpoint has them: control for freezing, without any new weights.",
    "Q and K kept and trainable, which changes nothing: an A/A control whose timing shows the noise.",
)
_register(
    "oelm-freeze",
    {"init": "headwise"},
    "OELM as published: each head's Q and K rows made orthonormal by QR of the checkpoint's, frozen; the method on trial.",
    "The start of oelm-freeze, but Q and K train: control for orthogonalising without freezing.",
)
_register(
    "oelm-random",
    {"init": "normal"},
    "Q and K drawn from N(0, 0.02), frozen: the published rival, which loses row space, row norm and orthogonality at once.",
    "The start of oelm-random, but Q and K train: control for whether training mends random Q and K.",
)
_register(
    "oelm-random-unit",
    {"init": "normal", "scale": "unit"},
    "Gaussian Q and K with rows of norm 1, frozen: control for the small rows of oelm-random, orthogonality being absent.",
    "The start of oelm-random-unit, but Q and K train: control for the row norm without freezing.",
)
_register(
    "oelm-random-orthogonal",
    {"init": "headwise_random"},
    "Each head's Q and K rows from QR of a Gaussian, frozen: control for the kept row space, orthogonality being equal.",
    "The start of oelm-random-orthogonal, but Q and K train: control for the row space without freezing.",
)
_register(
    "oelm-global",
    {"init": "global"},
    "QR of the whole Q and K matrices, frozen: control for heads that are also orthogonal to each other.",
    "The start of oelm-global, but Q and K train: control for global orthogonality without freezing.",
)
_register(
    "oelm-scale-matched",
    {"init": "headwise", "scale": "pretrained"},
    "oelm-freeze with rows scaled to the checkpoint's norm, frozen: control for the scale of the attention logits.",
    "The start of oelm-scale-matched, but Q and K train: control for direction alone, without freezing.",
)
