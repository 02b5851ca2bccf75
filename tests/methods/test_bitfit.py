"""bitfit: biases and the head, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForSequenceClassification

from fairtune.core.errors import ModelError
from fairtune.methods.bitfit import BitFit, BitFitConfig
from fairtune.models.init_card import make_init_card
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.sources import find_model

HEAD = {"classifier.weight", "classifier.bias"}


@pytest.fixture
def loaded(tiny_model: Path) -> LoadedModel:
    torch.manual_seed(0)
    return load_classifier(find_model(str(tiny_model)), ("neg", "pos"))


def bitfit(model: nn.Module) -> set[str]:
    """Prepare a model; names of what trains."""
    prepared = BitFit(BitFitConfig()).prepare(model)
    assert prepared is model
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_biases_and_the_head_train_and_nothing_else(loaded: LoadedModel) -> None:
    network = loaded.network
    trained = bitfit(network)
    assert trained == {name for name, _ in network.named_parameters() if name.endswith(".bias")} | HEAD
    assert "bert.encoder.layer.0.output.LayerNorm.bias" in trained
    card = make_init_card(network, loaded)
    layer = 4 * 32 + 64 + 32 + 2 * 32  # attention, both halves of the feed-forward, normalisations
    assert card.parameters.trainable == 32 + 2 * layer + 32 + (2 * 32 + 2), "embeddings, layers, pooler, head"
    assert (card.changed, len(card.new)) == ((), 2)


def test_a_model_without_biases_is_reported() -> None:
    config = LlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0
    )
    with pytest.raises(ModelError, match="LlamaForSequenceClassification: its base model has no bias terms"):
        bitfit(LlamaForSequenceClassification(config))
