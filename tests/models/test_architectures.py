"""Every sequence classifier of transformers: its queries and keys are found and proven, or it is refused in one sentence."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS
from transformers.models.bert.modeling_bert import BertSelfAttention

from fairtune.core.errors import ModelError
from fairtune.models.attention import attention_layers, block_numbers, freeze
from fairtune.models.depth import find_depths
from tests.models.architectures import tiny_config

COVERED = 107
NOT_BUILT = {
    "cohere_compass_text",
    "layoutlmv2",
    "reformer",
    "zamba",
    "zamba2",
}  # not small, or not without other packages
LOW_RANK = {"axk1", "axk2", "deepseek_v2", "deepseek_v3", "minicpm3", "mistral4"}
REFUSED = NOT_BUILT | LOW_RANK | {
    "convbert", "deberta", "fnet", "ibert", "jetmoe", "minimax", "mra", "squeezebert", "xlnet",
}  # fmt: skip
HYBRID = {"jamba", "qwen3_5", "qwen3_5_text", "qwen3_next"}
"""Of their two layers, one has no softmax attention."""
LAYERS_UNSEEN = {"canine", "funnel", "perceiver", "markuplm"}
"""Two tokens cannot go through them, which shows the order of layers; or their embeddings are numbered lists, too."""


def tiny(model_type: str) -> Any:
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return AutoModelForSequenceClassification.from_config(tiny_config(model_type)).eval()


def test_the_list_of_architectures_is_whole() -> None:
    assert len(set(CLASSIFIERS) - REFUSED) >= COVERED
    assert set(CLASSIFIERS) >= HYBRID


@pytest.mark.parametrize("model_type", sorted(set(CLASSIFIERS) - REFUSED))
def test_every_layer_is_covered_and_freezing_freezes_queries_and_keys_alone(model_type: str) -> None:
    model = tiny(model_type)
    state, generator = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    already = {id(parameter) for parameter in model.parameters() if not parameter.requires_grad}
    layers = attention_layers(model)
    assert torch.equal(torch.get_rng_state(), generator), "looking draws nothing"
    for layer in layers:
        assert {projection.part for projection in layer.projections} >= {"q", "k", "v"}
        for projection in layer.of("qk"):
            assert projection.weight().shape[0] % projection.heads == 0
    if model_type not in LAYERS_UNSEEN:
        assert len(block_numbers(model)) == (1 if model_type in HYBRID else find_depths(model).layers)
    freeze(model, set(range(len(layers))), "qk")
    parts = [projection for layer in attention_layers(model) for projection in layer.of("qk")]
    wanted = {id(parameter) for projection in parts for parameter in projection.module.parameters()}
    assert {id(parameter) for parameter in model.parameters() if not parameter.requires_grad} == wanted | already
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model.state_dict().keys() == state.keys()


@pytest.mark.parametrize("model_type", sorted(REFUSED - NOT_BUILT))
def test_what_is_not_known_is_refused_and_says_what_to_do(model_type: str) -> None:
    with pytest.raises(ModelError, match="register_attention"):
        attention_layers(tiny(model_type))


class GatedAttention(BertSelfAttention):
    """What it calls its query also scales its answer, so that it is more than a query."""

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        first, *others = super().forward(hidden_states, *args, **kwargs)
        return first * self.query(hidden_states).mean(), *others


class DeafAttention(BertSelfAttention):
    """It has queries and keys, and heeds neither."""

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> Any:
        self.query(hidden_states), self.key(hidden_states)
        return self.value(hidden_states), None


@pytest.mark.parametrize(
    ("attention", "reason"), [(GatedAttention, "decides more"), (DeafAttention, "does not depend")]
)
def test_a_name_proves_nothing(attention: type[nn.Module], reason: str) -> None:
    model = BertForSequenceClassification(
        BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8)
    )
    for layer in model.bert.encoder.layer:
        layer.attention.self = attention(model.config)
    with pytest.raises(ModelError, match=rf"{attention.__name__} at .* is not: .*{reason}.*register_attention"):
        attention_layers(model)
