"""Tiny random models: of any architecture that transformers classifies texts with, made from its own config class."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    MT5EncoderModel,
    PreTrainedConfig,
)

VOCABULARY = 60
SMALL: dict[str, int] = {
    size: value
    for sizes, value in (
        ("hidden_size d_model n_embd emb_dim dim d_latents true_hidden_size intra_bottleneck_size word_embed_proj_dim", 32),
        ("pooler_hidden_size", 32),
        ("num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers depth", 2),
        ("num_self_attends_per_block", 2),
        ("num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads", 4),
        ("num_self_attention_heads num_cross_attention_heads num_experts num_local_experts n_routed_experts", 4),
        ("num_key_value_heads num_kv_heads linear_num_key_heads linear_num_value_heads num_experts_per_tok", 2),
        ("intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff dff hidden_dim d_inner ffn_hidden_size", 48),
        ("moe_intermediate_size shared_expert_intermediate_size", 48),
        ("max_position_embeddings n_positions max_seq_len", 64),
        ("head_dim d_kv d_head kv_channels linear_key_head_dim linear_value_head_dim v_head_dim qk_head_dim", 8),
        ("vocab_size entity_vocab_size", VOCABULARY),
        ("embedding_size input_embedding_size output_embedding_size entity_emb_size kv_lora_rank q_lora_rank", 16),
        ("qk_rope_head_dim qk_nope_head_dim rotary_dim", 4),
        ("n_group topk_group", 1),
        ("image_size", 28),
        ("patch_size", 14),
        ("pad_token_id decoder_start_token_id", 0),
        ("bos_token_id cls_token_id", 1),
        ("eos_token_id sep_token_id", 2),
        ("mask_token_id", 3),
    )
    for size in sizes.split()
}  # fmt: skip
"""Sizes by the names that configs have for them."""
HYBRID = ["linear_attention", "full_attention"]
OWN: dict[str, dict[str, Any]] = {
    "esmc": {"num_key_value_heads": 4},
    "gpt_neo": {"attention_types": [[["global"], 2]]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "layoutlmv3": {"visual_embed": False, "coordinate_size": 6, "shape_size": 4},
    "lilt": {"hidden_size": 48},
    "markuplm": {"max_depth": 2},
    "mobilebert": {"embedding_size": 32},
    "qwen3_5": {"text_config": {"layer_types": HYBRID}},
    "qwen3_5_text": {"layer_types": HYBRID},
    "qwen3_next": {"layer_types": HYBRID},
    "roc_bert": {"pronunciation_vocab_size": 9, "shape_vocab_size": 9},
    "roformer": {"embedding_size": 32},
    "squeezebert": {"embedding_size": 32},
    "xmod": {"default_language": "en_XX"},
}
"""What an architecture needs to be so small."""
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
FALCON = {"multi_query": True, "new_decoder_architecture": False}
VARIANTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "gpt2": (AutoModelForCausalLM, "gpt2", {}),
    "gpt2-classifier": (AutoModelForSequenceClassification, "gpt2", {}),
    "gpt-neox": (AutoModelForCausalLM, "gpt_neox", {}),
    "gpt-neo": (AutoModelForCausalLM, "gpt_neo", {}),
    **{name: (AutoModelForCausalLM, name, {}) for name in ("opt", "bloom", "phi3", "mistral", "mixtral", "qwen2", "gemma2")},
    "stablelm": (AutoModelForCausalLM, "stablelm", {}),
    "qwen3": (AutoModelForCausalLM, "qwen3", {}),
    "deberta-v2": (AutoModelForSequenceClassification, "deberta-v2", RELATIVE),
    "deberta-v3": (
        AutoModelForSequenceClassification, "deberta-v2",
        {**RELATIVE, "share_att_key": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm"},
    ),
    "falcon-multi-query": (AutoModelForSequenceClassification, "falcon", FALCON),
    "falcon-alibi": (AutoModelForSequenceClassification, "falcon", {**FALCON, "alibi": True}),
    "falcon-by-group": (AutoModelForSequenceClassification, "falcon", {"new_decoder_architecture": True}),
    "t5": (AutoModelForSeq2SeqLM, "t5", {"decoder_start_token_id": 0}),
    "bart": (AutoModelForSeq2SeqLM, "bart", {}),
    "mt5-encoder": (MT5EncoderModel, "mt5", {}),
}  # fmt: skip
"""Models that are no plain classifier of the type they are called by."""


def tiny_config(model_type: str, more: dict[str, Any] | None = None) -> Any:
    config_class = CONFIG_MAPPING[model_type]
    values = _small(config_class())
    for field, value in {**OWN.get(model_type, {}), **(more or {})}.items():
        values[field] = {**values[field], **value} if isinstance(value, dict) else value
    return config_class(**values)


def _small(config: Any) -> dict[str, Any]:
    """The sizes of a config, and of the configs in it."""
    values: dict[str, Any] = {name: SMALL[name] for name in config.to_dict() if name in SMALL}
    return values | {name: _small(part) for name, part in vars(config).items() if isinstance(part, PreTrainedConfig)}


def draw(name: str) -> Any:
    """The model as transformers draws it."""
    kind, model_type, more = VARIANTS.get(name, (AutoModelForSequenceClassification, name, {}))
    config = tiny_config(model_type, more)
    return kind(config) if kind is MT5EncoderModel else kind.from_config(config)


FAMILIES = ("bert", "deberta-v3", "distilbert", "gpt2", "llama", "modernbert", "t5")
"""What expensive tests are made with: plain, relative positions, fused in two ways, grouped queries, two stacks."""
FUSED = ("gpt2", "modernbert", "gpt-neox", "phi3", "falcon-by-group")
BUILDERS = {name: partial(draw, name) for name in FAMILIES}


def build(name: str) -> Any:
    """The model, in evaluation mode, every weight random (biases too, which start at zero), so that no part is idle."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = draw(name).eval()
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def inputs(model: Any, length: int) -> dict[str, torch.Tensor]:
    """Two texts of so many tokens, none of them padding."""
    ids = torch.randint(5, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(length))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"] = ids.flip(1)
    return batch
