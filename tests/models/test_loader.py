"""Loading: plain transformers, fp32, no pickle, a tokenizer that knows its words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from fairtune.core.errors import ModelError
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.parameters import count_parameters
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def load(folder: Path, labels: tuple[str, ...] = ("neg", "pos"), seed: int = 0) -> LoadedModel:
    torch.manual_seed(seed)
    return load_classifier(find_model(str(folder)), labels)


def test_the_body_is_the_checkpoints_and_the_head_is_fresh(tiny_model: Path) -> None:
    loaded = load(tiny_model, ("a", "b", "c"))
    state, file = loaded.network.state_dict(), load_file(tiny_model / "model.safetensors")
    assert set(state) - loaded.from_checkpoint == {"classifier.weight", "classifier.bias"}
    assert state["classifier.weight"].shape == (3, 32)
    assert len(loaded.from_checkpoint) == len(file)
    for name, tensor in file.items():
        assert torch.equal(state[f"bert.{name}"], tensor)
    assert loaded.network.config.id2label == {0: "a", 1: "b", 2: "c"}


def test_the_head_depends_on_the_seed_alone(tiny_model: Path) -> None:
    heads = [load(tiny_model, seed=s).network.state_dict()["classifier.weight"] for s in (1, 1, 2)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_half_precision_weights_are_loaded_in_fp32(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    save_file({k: v.half() for k, v in weights.items()}, model / "model.safetensors", {"format": "pt"})
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "dtype": "float16", "torch_dtype": "float16"}))
    network = load(model).network
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    name = "encoder.layer.0.attention.self.query.weight"
    assert torch.equal(network.state_dict()[f"bert.{name}"], weights[name].half().float())


def test_a_head_of_another_size_is_drawn_afresh(tiny_model: Path, tmp_path: Path) -> None:
    load(tiny_model, ("a", "b", "c")).network.save_pretrained(tmp_path / "three")
    same, other = load(tmp_path / "three", ("x", "y", "z"), seed=5), load(tmp_path / "three", ("x", "y"), seed=5)
    assert "classifier.weight" in same.from_checkpoint
    assert not {"classifier.weight", "classifier.bias"} & other.from_checkpoint
    assert other.network.state_dict()["classifier.weight"].shape == (2, 32)


def test_a_tokenizer_without_its_vocabulary_is_refused(model: Path) -> None:
    data = json.loads((model / "tokenizer.json").read_text())
    data["model"]["vocab"] = {w: i for w, i in data["model"]["vocab"].items() if w.startswith("[")}
    (model / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(ModelError, match="vocabulary is missing"):
        load_tokenizer(model)


def test_a_tokenizer_without_padding_is_refused(model: Path) -> None:
    file = model / "tokenizer_config.json"
    config = {k: v for k, v in json.loads(file.read_text()).items() if k != "pad_token"}
    file.write_text(json.dumps(config))
    for extra in ("special_tokens_map.json", "added_tokens.json"):
        (model / extra).unlink(missing_ok=True)
    with pytest.raises(ModelError, match="no padding token"):
        load_tokenizer(model)


def test_parameters_buffers_and_shared_tensors_are_counted_once() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(4, 3))
    model[2].weight = model[0].weight
    model[1].requires_grad_(False)
    found = count_parameters(model)
    assert (found.trainable, found.frozen, found.buffers) == (12 + 3 + 3, 6, 3 + 3 + 1)
    assert found.total == 24
    assert found.as_json()["trainable_share"] == pytest.approx(18 / 24)
