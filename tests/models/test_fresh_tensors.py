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
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.errors import ModelError
from fairtune.models.loader import LoadedModel, load_classifier
from fairtune.models.sources import find_model
from tests.models import architectures

NO_CLASSIFIER = ("granite", "cohere")
"""Architectures of which transformers has no classifier."""
WITHOUT_DECODER = "mt5-encoder"


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def load(folder: Path) -> LoadedModel:
    return load_classifier(find_model(str(folder)), ("neg", "pos"))


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    weights = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    save_file(change(weights), folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("name", [name for name in architectures.BUILDERS if name not in NO_CLASSIFIER])
def test_no_checkpoint_of_a_known_architecture_is_refused(name: str, tmp_path: Path) -> None:
    architectures.build(name).save_pretrained(tmp_path / name)
    notes = load(tmp_path / name).notes
    assert bool(notes) == (name == WITHOUT_DECODER)
    assert all("decoder" in note for note in notes)


def test_a_checkpoint_of_other_names_is_refused_with_both_kinds_of_names(model: Path) -> None:
    rewrite(model, lambda weights: {f"student.{name}": tensor for name, tensor in weights.items()})
    with pytest.raises(ModelError) as caught:
        load(model)
    assert "has no weights for 39 of the 39 tensors of BertForSequenceClassification's encoder" in str(caught.value)
    assert "such as bert.embeddings.word_embeddings.weight, " in str(caught.value)
    assert "Its 39 tensors are called student.embeddings." in str(caught.value)
    assert "config.json" in str(caught.value)


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


def test_inspect_shows_the_note(poolerless: Path) -> None:
    answer = CliRunner().invoke(app, ["inspect", str(poolerless), "--json"])
    assert [NOTE in note for note in json.loads(answer.stdout)["notes"]] == [True]
    shown = CliRunner().invoke(app, ["inspect", str(poolerless)]).output
    assert "its checkpoint has no weights for 2 of the 39 tensors below the head" in " ".join(shown.split())


def test_a_run_has_the_note_among_its_warnings_and_in_its_card(
    poolerless: Path, tiny_task: Any, tmp_path: Path
) -> None:
    from tests.execution.conftest import ToyStudy, perform_here, toy_source

    job = ToyStudy(toy_source(poolerless, tiny_task), tmp_path).job("runs", steps=1, examples=32, eval_examples=10)
    assert perform_here(job)["status"] == "finished"
    events = [json.loads(line) for line in job.run.events.read_text().splitlines()]
    assert sum(NOTE in event["text"] for event in events if event["event"] == "warning") == 1
    assert NOTE in json.loads(job.run.card.read_text())["notes"][0]


def test_a_fit_has_the_note_too(poolerless: Path) -> None:
    from tests.classifier.made_examples import make_texts, quick

    fitted = quick(poolerless, epochs=1).fit(*make_texts(20))
    assert any(NOTE in note for note in fitted._provenance.notes)


def test_drawing_an_empty_network_first_changes_no_bit_of_the_head(tiny_model: Path) -> None:
    """The check of sizes builds the network once without memory, which must not use the generator."""
    torch.manual_seed(3)
    head = load(tiny_model).network.get_parameter("classifier.weight").detach()
    torch.manual_seed(3)
    assert torch.equal(head, torch.empty(2, 32).normal_(0.0, 0.02)), "the head is the generator's first draw"
