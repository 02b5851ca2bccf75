"""The card: a baseline is proved to be the untouched checkpoint, and every change shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fairtune.core.errors import RunFailure
from fairtune.methods.registry import create_method, parse_method_use
from fairtune.models.init_card import frozen_fingerprint, make_init_card
from fairtune.models.loader import LoadedModel, load_classifier, load_language_model
from fairtune.models.sources import find_model

WEIGHT = "bert.encoder.layer.1.output.dense.weight"


@pytest.fixture
def loaded(tiny_model: Path) -> LoadedModel:
    return load_classifier(find_model(str(tiny_model)), ("neg", "pos"))


def test_an_untouched_baseline_is_proved_against_the_file(loaded: LoadedModel) -> None:
    card = make_init_card(loaded.network, loaded)
    assert loaded.folder is not None
    assert card.same == len(load_file(loaded.folder / "model.safetensors"))
    assert (card.changed, card.unverified, card.frozen) == ((), (), ())
    assert set(card.new) == {"classifier.weight", "classifier.bias"}
    card.require_untouched()
    total = sum(p.numel() for p in loaded.network.parameters())
    assert (card.parameters.trainable, card.parameters.frozen, card.parameters.total) == (total, 0, total)
    assert json.loads(json.dumps(card.as_json()))["parameters"]["trainable_share"] == 1.0


def test_the_reference_is_the_file_and_not_what_was_loaded(tiny_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    loaded = load_classifier(find_model(str(folder)), ("neg", "pos"))
    weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
    weights["embeddings.word_embeddings.weight"][0, 0] += 1
    (folder / "model.safetensors").unlink()
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert [c.name for c in make_init_card(loaded.network, loaded).changed] == [
        "bert.embeddings.word_embeddings.weight"
    ]


def test_one_flipped_weight_stops_a_baseline(loaded: LoadedModel) -> None:
    with torch.no_grad():
        loaded.network.get_parameter(WEIGHT)[3, 4] *= -1
    card = make_init_card(loaded.network, loaded)
    assert [c.name for c in card.changed] == [WEIGHT]
    assert 0.99 < card.changed[0].cosine < 1
    assert card.changed[0].trainable
    with pytest.raises(RunFailure, match=rf"1 tensors differ from the checkpoint at step 0 \({WEIGHT}"):
        card.require_untouched()


def test_a_frozen_parameter_stops_a_baseline(loaded: LoadedModel) -> None:
    loaded.network.get_parameter(WEIGHT).requires_grad_(False)
    card = make_init_card(loaded.network, loaded)
    assert card.frozen == (WEIGHT,)
    assert card.parameters.frozen == 64 * 32
    with pytest.raises(RunFailure, match=f"1 tensors are frozen \\({WEIGHT}"):
        card.require_untouched()


@pytest.mark.parametrize("style", ["prefix", "gamma and beta", "sharded"])
def test_checkpoints_of_other_styles_are_verified_too(tiny_model: Path, tmp_path: Path, style: str) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if style == "prefix":
        save_file({f"bert.{k}": v for k, v in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    elif style == "gamma and beta":
        names = {
            k: k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            for k in weights
        }
        save_file({names[k]: v for k, v in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    else:
        homes = {k: f"model-{1 + i % 2}.safetensors" for i, k in enumerate(weights)}
        for shard in set(homes.values()):
            save_file({k: v for k, v in weights.items() if homes[k] == shard}, folder / shard, {"format": "pt"})
        index = {"metadata": {"total_size": 1}, "weight_map": homes}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    loaded = load_classifier(find_model(str(folder)), ("neg", "pos"))
    card = make_init_card(loaded.network, loaded)
    assert (card.same, card.changed, card.unverified) == (len(weights), (), ())
    assert set(card.new) == {"classifier.weight", "classifier.bias"}


def test_the_fingerprint_of_what_is_frozen_sees_every_bit(loaded: LoadedModel) -> None:
    empty = frozen_fingerprint(loaded.network)
    parameter = loaded.network.get_parameter(WEIGHT).requires_grad_(False)
    before = frozen_fingerprint(loaded.network)
    assert before != empty
    with torch.no_grad():
        loaded.network.get_parameter("classifier.weight").add_(1)
    assert frozen_fingerprint(loaded.network) == before, "what trains may change"
    with torch.no_grad():
        parameter[0, 0] = torch.nextafter(parameter[0, 0], torch.tensor(10.0))
    assert frozen_fingerprint(loaded.network) != before


@pytest.fixture(params=["gpt-mini", "llama-mini"])
def scratch(request: pytest.FixtureRequest) -> LoadedModel:
    torch.manual_seed(11)
    return load_language_model(find_model({"preset": request.param, "vocab_size": 300, "context": 16}))


def test_a_baseline_from_scratch_is_proved_by_drawing_it_again(scratch: LoadedModel) -> None:
    torch.manual_seed(99)
    before = torch.get_rng_state()
    card = make_init_card(scratch.network, scratch)
    assert torch.equal(torch.get_rng_state(), before), "drawing again leaves the generator alone"
    tensors = scratch.network.state_dict()
    assert card.same == len(tensors) - 1, "the tied head is the embedding"
    assert (card.changed, card.new, card.unverified, card.frozen) == ((), (), (), ())
    card.require_untouched()
    assert card.parameters.total == sum(p.numel() for p in scratch.network.parameters())


def test_orthogonal_queries_and_keys_of_a_model_from_scratch_are_the_only_change(scratch: LoadedModel) -> None:
    prepared = create_method(parse_method_use("orthogonal_qk"), 1).prepare(scratch.network)
    card = make_init_card(prepared, scratch)
    assert (card.new, card.unverified) == ((), ())
    kind = "c_attn.weight" if "GPT2" in type(scratch.network).__name__ else ("q_proj.weight", "k_proj.weight")
    assert card.changed
    assert all(change.name.endswith(kind) for change in card.changed)
    assert {change.trainable for change in card.changed} == {"partly" if kind == "c_attn.weight" else False}
    assert card.parameters.frozen == {"c_attn.weight": 526_336}.get(str(kind), 327_680)
