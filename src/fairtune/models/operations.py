"""Operations of training on a token, from a model's sizes alone: no weights, no torch. `models.flops` counts them on a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.files import read_json
from fairtune.models.presets import parse_preset, preset_config
from fairtune.models.published_shapes import GPT2_VOCABULARY, SHAPES, published_id
from fairtune.tasks.card.lengths import HIDDEN, INNER, Products, config_size

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
"""What architectures call the number of their layers."""
GATED = (
    "llama",
    "mistral",
    "ministral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3_text",
    "olmo2",
    "olmo3",
    "phi3",
    "smollm3",
)
"""Architectures whose feed-forward part has three products in place of two."""
PASSES = 3
"""A backward pass has the products of two forward passes."""
EMBEDDED = "sentence-transformers/all-MiniLM-L6-v2"
"""What `minilm` is called on the hub."""


def model_sizes(model: str | Mapping[str, Any], folder: str | None = None) -> dict[str, Any] | None:
    """A model's config as far as it decides the operations; None where its sizes are not known.

    Args:
        model: as a study names it.
        folder: with its files, where they are on this machine.
    """
    if (preset := parse_preset(model)) is not None:
        return preset_config(preset)
    known = published_id(EMBEDDED if model == "minilm" else str(model))
    if known is not None:
        model_type, sizes = SHAPES[known]
        return {"model_type": model_type, **sizes}
    return None if folder is None else read_json(Path(folder) / "config.json")


def operations_per_token(
    sizes: Mapping[str, Any] | None, length: int, batch: int, head: bool = False, vocabulary: int | None = None
) -> float | None:
    """Floating point operations of a forward and a backward pass, for each token of sequences of this length.

    Args:
        batch: sequences of a step, over which DeBERTa's positions are projected once.
        head: whether every token is predicted, as a language model does, over the vocabulary.
        vocabulary: tokens of the tokenizer, where it is not the model's own.
    """
    if sizes is None:
        return None
    hidden, layers = config_size(sizes, HIDDEN), config_size(sizes, LAYERS)
    if hidden is None or layers is None:
        return None
    inner = config_size(sizes, INNER) or 4 * hidden
    products = Products(hidden, inner * 3 // 2 if sizes.get("model_type") in GATED else inner)
    layer = float(products.flops(np.array(length))) / length
    if sizes.get("num_key_value_heads"):  # keys and values are shared by several heads
        layer -= 4 * hidden**2 * (1 - int(sizes["num_key_value_heads"]) / int(sizes["num_attention_heads"]))
    if sizes.get("model_type") == "deberta-v2" and (buckets := int(sizes.get("position_buckets") or 0)) > 0:
        rows = 2 * buckets  # relative positions, to either side
        layer += 2 * 2 * hidden * rows + 2 * 2 * hidden**2 * rows / (batch * length)
    last = 2 * hidden * (vocabulary or sizes.get("vocab_size") or GPT2_VOCABULARY) if head else 0
    return PASSES * (layers * layer + last)
