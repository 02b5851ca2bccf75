"""How deep parameters lie: every one somewhere, whatever the architecture and whatever wraps it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.attention import attention_layers
from fairtune.models.depth import Depths, find_depths
from fairtune.models.model_parts import head_parameters
from tests.models.architectures import BUILDERS, build


def places(model: nn.Module, depths: Depths | None = None) -> dict[str, list[str]]:
    """Names of the parameters of each place."""
    depths = depths or find_depths(model)
    found: dict[str, list[str]] = {}
    for name, parameter in model.named_parameters():
        found.setdefault(depths.name(depths.of[id(parameter)]), []).append(name)
    return found


@pytest.mark.parametrize("name", BUILDERS)
def test_every_parameter_of_every_architecture_lies_somewhere(name: str) -> None:
    model = build(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    state = torch.get_rng_state()
    depths = find_depths(model)
    assert set(depths.of) == {id(p) for p in model.parameters()}
    assert set(depths.of.values()) <= set(range(-1, depths.layers + 2))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items()), "it only looks"
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_pre_hooks for module in model.modules())

    found = places(model, depths)
    layers = 1 if name == "albert" else 4 if name in ("t5", "bart") else 2
    assert [place for place in found if place.startswith("layer")] == [f"layer {n}" for n in range(layers)]
    assert model.get_input_embeddings().weight is next(
        p for n, p in model.named_parameters() if n == found["embeddings"][0]
    ), "the words' table is at the bottom"
    assert set(found.get("head", ())) == (head_parameters(model) if model.base_model is not model else set())
    for layer in attention_layers(model):  # what another part of fairtune calls a block
        inside = {depths.of[id(p)] for p in model.get_submodule(layer.name).parameters()}
        assert inside == {layer.block}


@pytest.mark.parametrize(("name", "embeddings", "above"), [
    ("bert", ["embeddings.LayerNorm.weight", "embeddings.position_embeddings.weight"], ["bert.pooler.dense.weight"]),
    ("albert", ["albert.encoder.embedding_hidden_mapping_in.weight"], ["albert.pooler.weight"]),
    ("mpnet", ["mpnet.encoder.relative_attention_bias.weight"], []),
    ("deberta-v3", ["deberta.encoder.rel_embeddings.weight", "deberta.encoder.LayerNorm.weight"], []),
    ("gpt2", ["transformer.wpe.weight"], ["transformer.ln_f.weight"]),
    ("llama", ["model.embed_tokens.weight"], ["model.norm.weight"]),
])  # fmt: skip
def test_what_is_beside_the_layers_lies_where_it_is_used(name: str, embeddings: list[str], above: list[str]) -> None:
    found = places(build(name))
    assert all(any(own.endswith(wanted) for own in found["embeddings"]) for wanted in embeddings)
    assert set(above) <= set(found.get("above the layers", ()))
    if not above:
        assert "above the layers" not in found


def test_between_an_encoder_and_a_decoder() -> None:
    t5 = places(build("t5"))
    assert t5["embeddings"] == ["shared.weight"]
    assert "encoder.final_layer_norm.weight" in t5["layer 1"]
    assert t5["above the layers"] == ["decoder.final_layer_norm.weight"]
    assert "model.decoder.layernorm_embedding.weight" in places(build("bart"))["layer 1"]


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2-classifier"])
def test_adapters_lie_where_they_are_put_and_the_trained_head_is_the_head(name: str) -> None:
    peft = pytest.importorskip("peft")
    plain = places(build(name))
    targets = {"bert": ["query"], "llama": ["q_proj"], "gpt2-classifier": ["c_attn"]}[name]
    config = peft.LoraConfig(task_type="SEQ_CLS", target_modules=targets, r=2)
    found = places(peft.get_peft_model(build(name), config))
    assert found.keys() == plain.keys()
    for number in (0, 1):
        added = [own for own in found[f"layer {number}"] if "lora_" in own]
        assert len(added) == 2
        assert all(f".{number}." in own for own in added)
    assert {own.partition("modules_to_save.default.")[2] for own in found["head"]} >= {"weight"}


def test_what_cannot_be_looked_into_is_reported() -> None:
    class NoLayers(hf.PreTrainedModel):
        config_class: Any = hf.BertConfig

        def __init__(self) -> None:
            super().__init__(hf.BertConfig())
            self.words = nn.Embedding(5, 4)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:  # noqa: ARG002
            return self.words(input_ids)

    class Broken(NoLayers):
        def forward(self, pixels: Any) -> Any:
            return pixels

    with pytest.raises(ModelError, match="NoLayers: it has no numbered layers"):
        find_depths(NoLayers())
    with pytest.raises(ModelError, match=r"Broken: a text of 2 tokens cannot go through it.*TypeError"):
        find_depths(Broken())
    with pytest.raises(ModelError, match="Linear holds 0 transformers models, not one"):
        find_depths(nn.Linear(2, 2))
    with pytest.raises(ModelError, match="ModuleList holds 2 transformers models"):
        find_depths(nn.ModuleList([build("bert"), build("bert")]))
