"""Tiny random models of every architecture whose attention fairtune knows, each built from its own config class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

VOCABULARY = 60


def _bert_like(config: str, model: str, **more: Any) -> Callable[[], Any]:
    return lambda: getattr(hf, model)(
        getattr(hf, config)(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=64, pad_token_id=0, **more,
        )
    )  # fmt: skip


def _llama_like(config: str, model: str, **more: Any) -> Callable[[], Any]:
    return lambda: getattr(hf, model)(
        getattr(hf, config)(**{
            "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, **more,
        })
    )  # fmt: skip


def _falcon(**more: Any) -> Callable[[], Any]:
    return lambda: hf.FalconForSequenceClassification(
        hf.FalconConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, pad_token_id=0, bos_token_id=1,
            eos_token_id=2, **more,
        )
    )  # fmt: skip


BUILDERS: dict[str, Callable[[], Any]] = {
    "bert": _bert_like("BertConfig", "BertForSequenceClassification"),
    "bert-decoder-with-cross-attention": _bert_like("BertConfig", "BertModel", is_decoder=True, add_cross_attention=True),
    "roberta": _bert_like("RobertaConfig", "RobertaForSequenceClassification"),
    "xlm-roberta": _bert_like("XLMRobertaConfig", "XLMRobertaForSequenceClassification"),
    "camembert": _bert_like("CamembertConfig", "CamembertForSequenceClassification"),
    "electra": _bert_like("ElectraConfig", "ElectraForSequenceClassification", embedding_size=16),
    "mpnet": _bert_like("MPNetConfig", "MPNetForSequenceClassification"),
    "albert": _bert_like("AlbertConfig", "AlbertForSequenceClassification", embedding_size=16),
    "distilbert": lambda: hf.DistilBertForSequenceClassification(
        hf.DistilBertConfig(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64)
    ),
    "deberta-v2": _bert_like(
        "DebertaV2Config", "DebertaV2ForSequenceClassification", relative_attention=True, pos_att_type=["p2c", "c2p"]
    ),
    "deberta-v3": _bert_like(
        "DebertaV2Config", "DebertaV2ForSequenceClassification", relative_attention=True, pos_att_type=["p2c", "c2p"],
        share_att_key=True, position_buckets=16, norm_rel_ebd="layer_norm",
    ),
    "modernbert": _bert_like(
        "ModernBertConfig", "ModernBertForSequenceClassification", cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2
    ),
    "gpt2": lambda: hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
    ),
    "gpt2-classifier": lambda: hf.GPT2ForSequenceClassification(
        hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, pad_token_id=0)
    ),
    "gpt-neox": lambda: hf.GPTNeoXForCausalLM(
        hf.GPTNeoXConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=64,
        )
    ),
    "opt": lambda: hf.OPTForCausalLM(
        hf.OPTConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
            max_position_embeddings=64, word_embed_proj_dim=32,
        )
    ),
    "bloom": lambda: hf.BloomForCausalLM(
        hf.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, pad_token_id=0)
    ),
    "falcon-multi-query": _falcon(multi_query=True, new_decoder_architecture=False),
    "falcon-by-head": _falcon(multi_query=False, new_decoder_architecture=False, bias=True),
    "falcon-by-group": _falcon(new_decoder_architecture=True, num_kv_heads=2),
    "falcon-alibi": _falcon(multi_query=True, new_decoder_architecture=False, alibi=True),
    "phi3": _llama_like("Phi3Config", "Phi3ForCausalLM"),
    "llama": _llama_like("LlamaConfig", "LlamaForSequenceClassification"),
    "mistral": _llama_like("MistralConfig", "MistralForCausalLM"),
    "mixtral": _llama_like("MixtralConfig", "MixtralForCausalLM", num_local_experts=2),
    "qwen2": _llama_like("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": _llama_like("Qwen3Config", "Qwen3ForCausalLM", head_dim=8),
    "gemma": _llama_like("GemmaConfig", "GemmaForCausalLM", head_dim=8),
    "gemma2": _llama_like("Gemma2Config", "Gemma2ForCausalLM", head_dim=8),
    "gemma3": _llama_like("Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=8),
    "phi": _llama_like("PhiConfig", "PhiForCausalLM"),
    "starcoder2": _llama_like("Starcoder2Config", "Starcoder2ForCausalLM"),
    "olmo2": _llama_like("Olmo2Config", "Olmo2ForCausalLM"),
    "granite": _llama_like("GraniteConfig", "GraniteForCausalLM"),
    "cohere": _llama_like("CohereConfig", "CohereForCausalLM"),
    "smollm3": _llama_like("SmolLM3Config", "SmolLM3ForCausalLM"),
    "stablelm": _llama_like("StableLmConfig", "StableLmForCausalLM"),
    "t5": lambda: hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        )
    ),
    "mt5-encoder": lambda: hf.MT5EncoderModel(
        hf.MT5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    ),
    "bart": lambda: hf.BartForConditionalGeneration(
        hf.BartConfig(
            vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64,
        )
    ),
    "gpt-neo": lambda: hf.GPTNeoForCausalLM(
        hf.GPTNeoConfig(
            vocab_size=VOCABULARY, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global"], 2]],
            max_position_embeddings=64, intermediate_size=48,
        )
    ),
}  # fmt: skip
FUSED = ("modernbert", "gpt2", "gpt2-classifier", "gpt-neox", "bloom", "phi3",
         "falcon-multi-query", "falcon-by-head", "falcon-by-group", "falcon-alibi")  # fmt: skip


def build(name: str) -> Any:
    """The model, in evaluation mode, every weight random (biases too, which start at zero), so that no part is idle."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = BUILDERS[name]().eval()
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def inputs(model: Any, length: int) -> dict[str, torch.Tensor]:
    """Two texts of so many tokens, none of them padding."""
    ids = torch.randint(5, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(length))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if getattr(model.config, "add_cross_attention", False):
        batch["encoder_hidden_states"] = torch.randn(
            2, length, model.config.hidden_size, generator=torch.Generator().manual_seed(0)
        )
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"] = ids.flip(1)
    return batch
