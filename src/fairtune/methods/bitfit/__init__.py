"""BitFit: train the biases and the fresh head."""

from __future__ import annotations

from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register


class BitFitConfig(MethodConfig):
    """Train only the bias terms, those of layer normalisation included, and the fresh head; all else is frozen."""

    freezes_embeddings = True


register(
    "bitfit",
    BitFitConfig,
    "fairtune.methods.bitfit.method:BitFit",
    claims=["choice of trainable parameters"],
)
