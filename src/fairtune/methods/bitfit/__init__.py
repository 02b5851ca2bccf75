"""BitFit: train the biases and the fresh head."""

from fairtune.methods.bitfit.config import BitFitConfig
from fairtune.methods.registry import register

register(
    "bitfit",
    BitFitConfig,
    "fairtune.methods.bitfit.method:BitFit",
    claims=["choice of trainable parameters"],
)
