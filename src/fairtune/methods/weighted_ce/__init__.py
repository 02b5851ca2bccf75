"""Weighted cross entropy: some classes count more."""

from fairtune.methods.registry import register
from fairtune.methods.weighted_ce.config import WeightedCEConfig

register(
    "weighted_ce",
    WeightedCEConfig,
    "fairtune.methods.weighted_ce.method:WeightedCE",
    claims=["loss"],
    kinds=("classify",),
    toy={"weights": [1, 1.3]},  # its classes are balanced
)
