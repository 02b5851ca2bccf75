"""Operations of training on a token, from a model's sizes alone: no weights, no torch. `models.flops` counts them on a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtune.core.files import read_json
from fairtune.models.presets import parse_preset, preset_config
from fairtune.models.sources import find_model, with_vocabulary
from fairtune.settings.model import PresetModel

HIDDEN = ("hidden_size", "d_model", "dim", "n_embd")
"""What architectures call the width of their layers."""
INNER = ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "hidden_dim", "n_inner")
"""What they call the width of their feed-forward parts."""
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
GPT2_VOCABULARY = 50257
PUBLISHED, PRESET, OWN = "its published sizes", "the preset", "its own config"


def _bert(width: int, layers: int, vocabulary: int = 30522, heads: int | None = None) -> tuple[str, dict[str, Any]]:
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads or width // 64}
    return "bert", {**sizes, "intermediate_size": 4 * width, "vocab_size": vocabulary}


def _roberta(width: int, layers: int, vocabulary: int = 50265) -> tuple[str, dict[str, Any]]:
    sizes = _bert(width, layers, vocabulary)[1]
    return "roberta", {**sizes, "max_position_embeddings": 514, "type_vocab_size": 1}


def _gpt2(width: int, layers: int) -> tuple[str, dict[str, Any]]:
    return "gpt2", {"n_embd": width, "n_layer": layers, "n_head": width // 64}


_DEBERTA = {  # v3: keys and queries of the positions are made by the projections of the tokens
    "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "google-bert/bert-base-uncased": _bert(768, 12),
    "google-bert/bert-base-cased": _bert(768, 12, 28996),
    "google-bert/bert-base-multilingual-cased": _bert(768, 12, 119547),
    "google-bert/bert-large-uncased": _bert(1024, 24),
    "google/bert_uncased_L-2_H-128_A-2": _bert(128, 2),
    "google/bert_uncased_L-4_H-256_A-4": _bert(256, 4),
    "google/bert_uncased_L-4_H-512_A-8": _bert(512, 4),
    "google/bert_uncased_L-8_H-512_A-8": _bert(512, 8),
    "microsoft/MiniLM-L12-H384-uncased": _bert(384, 12, heads=12),
    "allenai/scibert_scivocab_uncased": _bert(768, 12, 31090),
    "sentence-transformers/all-MiniLM-L6-v2": _bert(384, 6, heads=12),
    "distilbert/distilbert-base-uncased": ("distilbert", {"dim": 768, "n_layers": 6, "hidden_dim": 3072}),
    "FacebookAI/roberta-base": _roberta(768, 12),
    "FacebookAI/roberta-large": _roberta(1024, 24),
    "FacebookAI/xlm-roberta-base": ("xlm-roberta", _roberta(768, 12, 250002)[1]),
    "microsoft/deberta-v3-base": ("deberta-v2", {**_bert(768, 12, 128100)[1], **_DEBERTA}),
    "openai-community/gpt2": _gpt2(768, 12),
    "openai-community/gpt2-medium": _gpt2(1024, 24),
    "openai-community/gpt2-large": _gpt2(1280, 36),
    "distilbert/distilgpt2": _gpt2(768, 6),
}
"""Well-known checkpoints, also where there is no network: the architecture, and what differs from its usual config."""


def find_config(name: str, **values: Any) -> tuple[Any, str]:
    """The config of a model that a study names, with these values in place of its own, and where it comes from in words."""
    from fairtune.models.transformers_files import make_config, read_config  # torch, which sizes do not need

    what = f"model '{name}'"
    if (known := _published(name)) is not None:  # a config says nothing else, and asking the hub takes its time
        return make_config(known[0], {**known[1], **values}, what), PUBLISHED
    source = find_model(name)
    if source.preset is not None:
        sized = source if source.vocabulary else with_vocabulary(source, GPT2_VOCABULARY)
        settings = preset_config(sized.preset or {})
        return make_config(settings.pop("model_type"), {**settings, **values}, what), PRESET
    return read_config(source.fetch(), what, **values), OWN


def _published(name: str) -> tuple[str, dict[str, Any]] | None:
    """The sizes of a well-known model, by its hub id or the last part of it."""
    plain = name.partition("@")[0]
    return next((sizes for known, sizes in SHAPES.items() if plain in (known, known.rpartition("/")[2])), None)


def model_sizes(model: str | PresetModel | Mapping[str, Any], folder: str | None = None) -> dict[str, Any] | None:
    """A model's config as far as it decides the operations; None where its sizes are not known."""
    if (preset := parse_preset(model)) is not None:
        return preset_config(preset)
    if (known := _published("all-MiniLM-L6-v2" if model == "minilm" else str(model))) is not None:
        return {"model_type": known[0], **known[1]}
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
    hidden, layers = _size(sizes, HIDDEN), _size(sizes, LAYERS)
    if hidden is None or layers is None:
        return None
    inner = _size(sizes, INNER) or 4 * hidden
    inner = inner * 3 // 2 if sizes.get("model_type") in GATED else inner
    layer = float(8 * hidden**2 + 4 * hidden * inner + 4 * hidden * length)
    if sizes.get("num_key_value_heads"):  # keys and values are shared by several heads
        layer -= 4 * hidden**2 * (1 - int(sizes["num_key_value_heads"]) / int(sizes["num_attention_heads"]))
    if sizes.get("model_type") == "deberta-v2" and (buckets := int(sizes.get("position_buckets") or 0)) > 0:
        rows = 2 * buckets  # relative positions, to either side
        layer += 2 * 2 * hidden * rows + 2 * 2 * hidden**2 * rows / (batch * length)
    last = 2 * hidden * (vocabulary or sizes.get("vocab_size") or GPT2_VOCABULARY) if head else 0
    return PASSES * (layers * layer + last)


def _size(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A size in a config, by the first of some names that it has."""
    return next((value for name in names if isinstance(value := config.get(name), int) and value > 0), None)
