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
    queries_and_keys = [projection for layer in layers for projection in layer.of("qk")]
    held, first = sum(projection.parameters for projection in queries_and_keys), queries_and_keys[0]
    return {
        "layers": len(layers),
        "heads": first.heads,
        "key_heads": layers[0].of("k")[0].heads,
        "head_dim": first.weight().shape[0] // first.heads,
        "names": [layer.name for layer in layers],
        "qk_parameters": held,
        "qk_share": held / total,
    }
