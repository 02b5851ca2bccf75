"""The counts that are known of published models, from their configs alone: what freezing queries and keys freezes."""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, GPTNeoConfig, GPTNeoForCausalLM

from fairtune.methods.arms import named_arms
from fairtune.methods.registry import create_method
from fairtune.models.parameters import ParameterCount, count_parameters


def frozen_pretrained(model: nn.Module) -> ParameterCount:
    (use,) = named_arms()["freeze-pretrained"].uses
    return count_parameters(create_method(use, seed=0).prepare(model))


def test_bert_base_has_12_95_percent_in_queries_and_keys() -> None:
    with torch.device("meta"):
        model = BertForSequenceClassification(BertConfig(num_labels=2))  # the defaults are bert-base-uncased's
    counts = frozen_pretrained(model)
    assert (counts.frozen, counts.total) == (14_174_208, 109_483_778)
    assert round(100 * counts.frozen / counts.total, 2) == 12.95


def test_a_gpt_of_512_without_attention_biases_has_7_percent() -> None:
    config = GPTNeoConfig(
        vocab_size=50257, hidden_size=512, num_layers=6, num_heads=8, intermediate_size=2048,
        max_position_embeddings=512, attention_types=[[["global"], 6]],
    )  # fmt: skip
    with torch.device("meta"):
        model = GPTNeoForCausalLM(config)
    for block in model.transformer.h:
        block.attn.attention.out_proj.bias = None
    counts = frozen_pretrained(model)
    assert (counts.frozen, counts.total) == (3_145_728, 44_896_768)
    assert round(100 * counts.frozen / counts.total, 1) == 7.0
