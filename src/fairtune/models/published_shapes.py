"""The sizes of well-known checkpoints, for what needs no weights: counting operations, also where there is no network.

Each entry is transformers' name of the architecture and what differs from that architecture's usual config.
"""

from __future__ import annotations

from typing import Any

from fairtune.models.presets import preset_config
from fairtune.models.sources import find_model, with_vocabulary

GPT2_VOCABULARY = 50257
PUBLISHED, PRESET, OWN = "its published sizes", "the preset", "its own config"


def _bert(width: int, layers: int, vocabulary: int = 30522, heads: int | None = None) -> tuple[str, dict[str, Any]]:
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "intermediate_size": 4 * width,
        "vocab_size": vocabulary,
    }
    return "bert", {**sizes, "num_attention_heads": heads or width // 64}


def _roberta(width: int, layers: int, vocabulary: int = 50265) -> tuple[str, dict[str, Any]]:
    sizes = _bert(width, layers, vocabulary)[1]
    return "roberta", {**sizes, "max_position_embeddings": 514, "type_vocab_size": 1}


def _deberta(width: int, layers: int, vocabulary: int = 128100) -> tuple[str, dict[str, Any]]:
    """DeBERTa-v3: keys and queries of the positions are made by the projections of the tokens."""
    positions = {
        "relative_attention": True,
        "position_buckets": 256,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    }
    return "deberta-v2", {**_bert(width, layers, vocabulary)[1], **positions}


def _gpt2(width: int, layers: int) -> tuple[str, dict[str, Any]]:
    return "gpt2", {"n_embd": width, "n_layer": layers, "n_head": width // 64}


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
    "microsoft/deberta-v3-base": _deberta(768, 12),
    "openai-community/gpt2": _gpt2(768, 12),
    "openai-community/gpt2-medium": _gpt2(1024, 24),
    "openai-community/gpt2-large": _gpt2(1280, 36),
    "distilbert/distilgpt2": _gpt2(768, 6),
}


def find_config(name: str, **values: Any) -> tuple[Any, str]:
    """A model's config, and where it comes from in words.

    Args:
        name: as a study names a model.
        values: of the config, that replace its own.

    Raises:
        ModelError: there is no such model, and its sizes are not known.
    """
    from fairtune.models.transformers_files import make_config, read_config  # torch, which sizes do not need

    what, known = f"model '{name}'", published_id(name)
    if known is not None:  # a config says nothing else, and asking the hub takes its time
        model_type, sizes = SHAPES[known]
        return make_config(model_type, {**sizes, **values}, what), PUBLISHED
    source = find_model(name)
    if source.preset is not None:
        sized = source if source.vocabulary else with_vocabulary(source, GPT2_VOCABULARY)
        settings = preset_config(sized.preset or {})
        return make_config(settings.pop("model_type"), {**settings, **values}, what), PRESET
    return read_config(source.fetch(), what, **values), OWN


def published_id(name: str) -> str | None:
    """The full hub id of a model whose sizes are known, also by its last part."""
    plain = name.partition("@")[0]
    return next((known for known in SHAPES if plain in (known, known.rpartition("/")[2])), None)
