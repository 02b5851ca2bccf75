"""What a checkpoint has no weights for: a head is drawn, a pooler is reported, an encoder is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fairtune.core.errors import ModelError
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.sources import find_model
from tests.models import architectures


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def load(folder: Path) -> LoadedModel:
    return load_classifier(find_model(str(folder)), ("neg", "pos"))


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    weights = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    save_file(change(weights), folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "deberta-v2"])
def test_whole_checkpoints_have_no_notes(name: str, tmp_path: Path) -> None:
    architectures.build(name).save_pretrained(tmp_path / name)
    assert load(tmp_path / name).notes == ()


def test_a_checkpoint_of_other_names_is_refused(model: Path) -> None:
    rewrite(model, lambda weights: {f"student.{name}": tensor for name, tensor in weights.items()})
    with pytest.raises(ModelError, match=r"no weights for 39 of the 39 tensors .*config\.json"):
        load(model)


@pytest.mark.parametrize("kept", ["embeddings", "layer.0"])
def test_a_checkpoint_of_which_most_is_missing_is_refused(model: Path, kept: str) -> None:
    rewrite(model, lambda weights: {name: tensor for name, tensor in weights.items() if kept in name})
    with pytest.raises(ModelError, match="would be trained from random weights"):
        load(model)


def test_weights_of_another_shape_are_refused_unless_they_are_the_heads(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 64}))
    with pytest.raises(ModelError, match=r"1 tensors have another shape .*config\.json.*position_embeddings\.weight"):
        load(model)


@pytest.fixture
def poolerless(model: Path) -> Path:
    rewrite(model, lambda weights: {name: tensor for name, tensor in weights.items() if "pooler" not in name})
    return model


NOTE = "its checkpoint has no weights for 2 of the 39 tensors below the head (bert.pooler.dense.weight, bert.pooler.dense.bias)"


def test_a_missing_pooler_is_noted(poolerless: Path, tiny_model: Path) -> None:
    loaded = load(poolerless)
    assert loaded.notes == (f"model 'model': {NOTE}; they start from random values.",)
    assert not load(tiny_model).notes


def test_a_run_has_the_note_among_its_warnings_and_in_its_card(
    poolerless: Path, tiny_task: Any, tmp_path: Path
) -> None:
    from tests.execution.conftest import ToyStudy, perform_here, toy_source

    job = ToyStudy(toy_source(poolerless, tiny_task), tmp_path).job("runs", steps=1, examples=32, eval_examples=10)
    assert perform_here(job)["status"] == "finished"
    events = [json.loads(line) for line in job.run.events.read_text().splitlines()]
    assert sum(NOTE in event["text"] for event in events if event["event"] == "warning") == 1
    assert NOTE in json.loads(job.run.card.read_text())["notes"][0]


def test_the_head_is_the_first_draw_of_the_generator(tiny_model: Path) -> None:
    torch.manual_seed(3)
    head = load(tiny_model).network.get_parameter("classifier.weight").detach()
    torch.manual_seed(3)
    assert torch.equal(head, torch.empty(2, 32).normal_(0.0, 0.02)), "the head is the generator's first draw"
