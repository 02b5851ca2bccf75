"""Averaged weights: evaluated and kept in place of the raw ones."""

from fairtune.methods.ema.config import EMAConfig
from fairtune.methods.registry import register

register(
    "ema",
    EMAConfig,
    "fairtune.methods.ema.method:AveragedWeights",
    claims=["weights that are evaluated"],
    toy={"decay": 0.9},
)
