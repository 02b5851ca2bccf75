"""Everything about a model that can be told without training it."""

from __future__ import annotations

from typing import Any

import torch

from fairtune.errors import ModelError
from fairtune.models.attention import attention_layers
from fairtune.models.card import make_card
from fairtune.models.loading import load_classifier
from fairtune.models.sources import ModelSource


def inspect_model(source: ModelSource) -> dict[str, Any]:
    """The model with a fresh head for two classes: its card, its parameters, its attention layers."""
    torch.manual_seed(0)
    loaded = load_classifier(source, ("0", "1"))
    card = make_card(loaded.network, loaded).as_json()
    return {
        "model": source.as_json(),
        "architecture": type(loaded.network).__name__,
        "attention": _attention(loaded.network, card["parameters"]["total"]),
        **card,
    }


def _attention(network: torch.nn.Module, total: int) -> dict[str, Any]:
    try:
        layers = attention_layers(network)
    except ModelError as error:
        return {"layers": 0, "problem": str(error)}
    frozen = sum(p.numel() for layer in layers for part in (layer.query, layer.key) for p in part.parameters())
    return {
        "layers": len(layers),
        "heads": layers[0].heads,
        "head_dim": layers[0].head_dim,
        "names": [layer.name for layer in layers],
        "qk_parameters": frozen,
        "qk_share": frozen / total,
    }
