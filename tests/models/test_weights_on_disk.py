"""Which weights are loaded: safetensors in the folder, those that are hashed, and nothing beside them or in their place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fairtune.core.errors import ModelError
from fairtune.models.folder_safety import INDEX, SINGLE, weight_files
from fairtune.models.loader import load_classifier
from fairtune.models.sources import ModelSource, find_model
from tests.models.hostile_models import CLASSES

TENSOR = "embeddings.word_embeddings.weight"


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def sharded(folder: Path, shard: str, **more: Any) -> None:
    """Put an index in place of the single file, which names one shard."""
    names = load_file(folder / SINGLE)
    (folder / SINGLE).rename(folder / "whole.safetensors")
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, shard), **more}))


def refused(folder: Path, words: str) -> None:
    """By the search for it, and by whoever was given it found."""
    for use in (
        lambda: find_model(str(folder)),
        lambda: load_classifier(ModelSource("model", "", str(folder)), ("a", "b")),
    ):
        with pytest.raises(ModelError, match=words) as caught:
            use()
        assert "\n" not in str(caught.value)


def test_pickled_weights_are_never_loaded_whatever_an_index_calls_them(model: Path) -> None:
    torch.save(load_file(model / SINGLE), model / "w.bin")
    sharded(model, "w.bin")
    refused(model, r"w\.bin' as weights; only \*\.safetensors in the folder are loaded")


@pytest.mark.parametrize(
    "name",
    ["../outside.safetensors", "sub/a.safetensors"],
)
def test_shards_have_plain_names(model: Path, name: str) -> None:
    shutil.copy(model / SINGLE, model.parent / "outside.safetensors")
    sharded(model, name)
    refused(model, "as weights")


def test_of_a_single_file_and_an_index_the_one_that_is_loaded_is_hashed(model: Path, tiny_model: Path) -> None:
    weights = load_file(model / SINGLE)
    other = {name: tensor + 1 for name, tensor in weights.items()}
    save_file(other, model / "other.safetensors", {"format": "pt"})
    homes = dict.fromkeys(other, "other.safetensors")
    (model / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": homes}))
    found = find_model(str(model))
    assert found.identity == find_model(str(tiny_model)).identity
    assert weight_files(model) == [model / SINGLE]
    loaded = load_classifier(found, ("a", "b")).network.state_dict()[f"bert.{TENSOR}"]
    assert torch.equal(loaded, weights[TENSOR]), "transformers took the single file"
    save_file(other, model / SINGLE, {"format": "pt"})
    assert find_model(str(model)).identity != found.identity


def test_an_adapter_is_not_put_on_top_of_a_model(model: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel

    get_peft_model(AutoModel.from_pretrained(model), LoraConfig(init_lora_weights=False)).save_pretrained(model)
    refused(model, r"holds an adapter \(adapter_config\.json\).*merge_and_unload")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("transformers_weights", "other.safetensors", "names another file of weights"),
        ("configuration_files", ["config.4.0.0.json"], "names other configs"),
        ("quantization_config", {"quant_method": "awq", "bits": 4}, "weights are quantised"),
        ("text_config", {"quantization_config": {"quant_method": "bitsandbytes"}}, "weights are quantised"),
    ],
)
def test_what_would_be_read_in_place_of_what_is_hashed_is_refused(
    model: Path, field: str, value: Any, words: str
) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, field: value}))
    shutil.copy(model / SINGLE, model / "other.safetensors")
    (model / "config.4.0.0.json").write_text(json.dumps({**config, "auto_map": dict.fromkeys(CLASSES, "evil.Evil")}))
    refused(model, rf"config\.json .*{words}")
