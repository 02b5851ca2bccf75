"""The settings of `bitfit`."""

from __future__ import annotations

from fairtune.methods.config import MethodConfig


class BitFitConfig(MethodConfig):
    """Train only the bias terms, those of layer normalisation included, and the fresh head; all else is frozen."""

    freezes_embeddings = True
