"""The model around a BP-SOM head: any base under its own names, pooled right, folded into plain transformers or saved whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from fairtune.core.errors import ModelError
from fairtune.methods.base import Method
from fairtune.methods.bpsom.model import BPSOMForSequenceClassification, active_head
from fairtune.methods.bpsom.pruning import prune
from fairtune.methods.bpsom.tanh_head import folded
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.attention import attention_layers
from fairtune.models.causal_classifier import classify_at_last_token
from fairtune.models.init_card import make_init_card
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.model_parts import head_modules, head_parameters
from fairtune.models.sources import find_model
from tests.models import architectures

SMALL = {"hidden": 12, "grid": 3}
HEAD = {"bpsom.hidden.weight", "bpsom.hidden.bias", "bpsom.out.weight", "bpsom.out.bias"}


@pytest.fixture
def loaded(tiny_model: Path) -> LoadedModel:
    torch.manual_seed(0)
    return load_classifier(find_model(str(tiny_model)), ("neg", "pos"))


def bpsom(seed: int = 0, **settings: Any) -> Method:
    return create_method(parse_method_use({"bpsom": {**SMALL, **settings}}), seed)


def wrapped(name: str) -> BPSOMForSequenceClassification:
    network = architectures.build(name).eval()
    network.config.pad_token_id = 0
    classify_at_last_token(network, None)
    return BPSOMForSequenceClassification.of(network, hidden=12, grid=3)


def texts(rows: int = 3, width: int = 9) -> dict[str, Tensor]:
    """Texts of different lengths, padded on the right."""
    ids = torch.randint(5, 50, (rows, width), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    for row in range(rows):
        mask[row, width - row :] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


@torch.no_grad()
def answer(model: nn.Module, **inputs: Tensor) -> Tensor:
    logits: Tensor = model.eval()(**(inputs or texts())).logits
    return logits


def test_the_base_keeps_the_checkpoints_names_and_bits_and_only_the_head_is_new(loaded: LoadedModel) -> None:
    model = bpsom().prepare(loaded.network)
    card = make_init_card(model, loaded)
    assert (card.changed, card.unverified, card.frozen) == ((), (), ())
    assert all(name.startswith("bpsom.") for name in card.new)
    assert head_parameters(model) == HEAD
    assert head_modules(model) == ["bpsom"]
    assert not any("pooler" in name or name.startswith("classifier") for name in model.state_dict()), "no idle weights"
    assert len(attention_layers(model)) == 2
    assert card.parameters.trainable == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", ["gpt2-classifier", "llama", "opt"])
def test_of_a_gpt_the_last_real_token_is_classified_whatever_pads_it(name: str) -> None:
    if name == "opt":
        config = architectures.build(name).config
        config.pad_token_id = 0
        network = hf.AutoModelForSequenceClassification.from_config(config).eval()
        classify_at_last_token(network, None)
        model = BPSOMForSequenceClassification.of(network, hidden=12, grid=3)
    else:
        model = wrapped(name)
    assert model.pooling == "last"
    together = answer(model)
    for row in range(3):
        alone = texts()["input_ids"][row : row + 1, : 9 - row]
        torch.testing.assert_close(answer(model, input_ids=alone)[0], together[row], atol=1e-5, rtol=1e-4)


FOLDS = ["bert", "roberta", "xlm-roberta", "camembert", "mpnet", "albert"]


@pytest.mark.parametrize("name", FOLDS)
def test_the_trained_pruned_head_is_the_tanh_head_of_plain_transformers(name: str, tmp_path: Path) -> None:
    model = wrapped(name)
    with torch.no_grad():
        for parameter in model.bpsom.parameters():
            parameter.normal_(std=0.5, generator=torch.Generator().manual_seed(2))
    prune(model.bpsom, torch.arange(12) % 3 > 0, torch.full((12,), 0.4))
    expected = answer(model)
    plain = folded(model)
    assert plain is not None
    assert type(plain) is type(architectures.build(name))
    plain.save_pretrained(tmp_path)
    back = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(answer(back), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["electra", "distilbert", "deberta-v2", "modernbert", "gpt2-classifier", "llama"])
def test_where_plain_transformers_has_no_such_head_the_model_saves_and_loads_itself(name: str, tmp_path: Path) -> None:
    model = wrapped(name)
    prune(model.bpsom, torch.arange(12) > 2, torch.full((12,), 0.4))
    expected = answer(model)
    plain = bpsom().plain(model)
    assert plain is model
    assert torch.equal(answer(model), expected), "trying to fold it left it as it was"
    model.save_pretrained(tmp_path)
    back = BPSOMForSequenceClassification.from_pretrained(tmp_path)
    assert torch.equal(answer(back), expected)
    assert all(torch.equal(a, back.state_dict()[n]) for n, a in model.state_dict().items()), "the map too"
    assert (back.bpsom.units, back.pooling, back.config.id2label) == (9, model.pooling, model.config.id2label)
    with pytest.raises(ValueError, match="fairtune-bpsom"):
        hf.AutoModelForSequenceClassification.from_pretrained(tmp_path)  # loudly, not with another head


def test_a_folder_that_is_none_of_ours_or_damaged_is_reported(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        BPSOMForSequenceClassification.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="is of a bert, not of a model with a BP-SOM head; load it with plain"):
        BPSOMForSequenceClassification.from_pretrained(tiny_model)
    wrapped("distilbert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["head"]["hidden"] = 5
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="damaged"):
        BPSOMForSequenceClassification.from_pretrained(tmp_path)


@pytest.mark.parametrize(("name", "changes", "expected"), [
    ("bert", {"num_labels": 1}, "has 1 outputs for regression; its map needs"),
    ("bert", {"problem_type": "regression"}, "outputs for regression"),
    ("bert", {"problem_type": "multi_label_classification"}, "outputs for multi label classification"),
    ("bart", {}, "BartForSequenceClassification is an encoder-decoder"),
    ("gpt2", {}, "GPT2LMHeadModel is not a classifier of texts"),
])  # fmt: skip
def test_a_model_that_does_not_tell_classes_apart_is_refused(name: str, changes: dict[str, Any], expected: str) -> None:
    network = architectures.build(name)
    if name == "bart":
        network = hf.BartForSequenceClassification(network.config)
    for key, value in changes.items():
        setattr(network.config, key, value)
    with pytest.raises(ModelError, match=expected):
        bpsom().prepare(network)


def test_observer_and_bpsom_start_from_the_same_bits_and_draw_nothing_of_others(tiny_model: Path) -> None:
    def start(seed: int, **settings: Any) -> dict[str, Tensor]:
        torch.manual_seed(0)
        network = load_classifier(find_model(str(tiny_model)), ("neg", "pos")).network
        before = torch.get_rng_state()
        state = bpsom(seed, **settings).prepare(network).state_dict()
        assert torch.equal(torch.get_rng_state(), before), "what other arms draw stays the same"
        return state

    acts, watches, other = start(1), start(1, alpha=0.0, prune=None), start(2)
    assert all(torch.equal(acts[name], watches[name]) for name in acts)
    assert not torch.equal(acts["bpsom.hidden.weight"], other["bpsom.hidden.weight"])
    assert not torch.equal(acts["bpsom.som.prototypes"], other["bpsom.som.prototypes"])


def prepared(network: nn.Module, *uses: Any) -> tuple[nn.Module, list[Method]]:
    methods = [create_method(parse_method_use(use), 3) for use in uses]
    for method in methods:
        network = method.prepare(network)
    for method in methods:
        method.param_groups([], network)
    return network, methods


BPSOM = {"bpsom": SMALL}


def test_adapters_around_it_train_the_head_that_is_in_use(loaded: LoadedModel) -> None:
    pytest.importorskip("peft")
    model, methods = prepared(loaded.network, BPSOM, {"peft": {"type": "lora"}})
    head = active_head(model)
    assert all(p.requires_grad for p in head.parameters())
    assert make_init_card(model, loaded).changed == ()
    start = head.som.prototypes.clone()
    model.train()(**texts(), labels=torch.tensor([0, 1, 0])).loss.backward()
    assert not torch.equal(head.som.prototypes, start), "the map in use learns"
    assert head.hidden.weight.grad is not None
    prune(head, torch.arange(12) > 3, torch.full((12,), 0.5))
    expected = answer(model)
    for method in reversed(methods):
        model = method.plain(model)
    assert type(model) is hf.BertForSequenceClassification
    torch.testing.assert_close(answer(model), expected, atol=1e-5, rtol=1e-4)
