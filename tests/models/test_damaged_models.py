"""Damaged model folders, by every way in: one sentence names the file, and never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.errors import ModelError
from fairtune.models.loader import load_classifier
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.testing.toy import VOCABULARY
from tests.fuzz import made


@pytest.fixture(scope="module")
def whole() -> Path:
    return made.classifier()


@pytest.fixture
def model(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def in_json(file: str, **fields: Any) -> Any:
    def damage(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**content, **fields}))

    return damage


def with_text(file: str, text: str) -> Any:
    return lambda folder: (folder / file).write_text(text)


def cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-5])


def sharded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    homes = {"one": "a.safetensors", "other": "b.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))


DEEP = "[" * 100_000 + "]" * 100_000
CASES: dict[str, tuple[Any, str]] = {
    "no heads": (in_json("config.json", num_attention_heads=0), "config.json"),
    "an unknown type": (in_json("config.json", model_type="nonsense"), "config.json"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "no type": (with_text("config.json", "{}"), "config.json names no model_type"),
    "pickled": (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "no *.safetensors weights"),
    "a missing shard": (sharded, "weights are missing: b.safetensors"),
    "a list as config": (with_text("config.json", "[]"), "config.json is not a JSON mapping"),
    "a deep config": (with_text("config.json", DEEP), "config.json is not a JSON mapping: it is nested too deeply"),
    "an unknown tokenizer version": (in_json("tokenizer.json", version="9.0"), "tokenizer.json"),
    "cut weights": (cut, "(config.json, model.safetensors): Error"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_damage_is_reported_in_a_sentence_that_names_the_file(model: Path, case: str) -> None:
    damage, named = CASES[case]
    damage(model)
    with pytest.raises(ModelError) as caught:
        load_classifier(find_model(str(model)), ("a", "b"), load_tokenizer.__wrapped__(model))
    said = str(caught.value)
    assert named in said
    assert "\n" not in said
    assert len(said) < 700


@pytest.mark.parametrize("verb", ["inspect", "predict", "train"])
def test_verbs_tell_it_and_nothing_else(model: Path, tiny_task: Any, tmp_path: Path, verb: str) -> None:
    damage, named = CASES["an unknown tokenizer version"]
    damage(model)
    words = {
        "inspect": ["inspect", str(model), "--task", json.dumps(tiny_task.as_study())],
        "predict": ["predict", str(model), str(tiny_task.test)],
        "train": ["train", str(tiny_task.train), "--model", str(model), "-o", str(tmp_path / "out")],
    }
    load_tokenizer.cache_clear()
    done = CliRunner().invoke(app, words[verb])
    assert done.exit_code == 2, done.output
    assert named in done.output
    assert isinstance(done.exception, SystemExit)


def test_a_tokenizer_of_another_model_is_reported(model: Path, tiny_task: Any) -> None:
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["film"] = 5000
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    done = CliRunner().invoke(app, ["predict", str(model), str(tiny_task.test)])
    assert done.exit_code == 2, done.output
    assert f"gives token 5,000, but it has embeddings for {len(VOCABULARY)} tokens only" in done.output


def test_a_run_of_a_damaged_model_fails_with_the_reason(model: Path, tiny_task: Any, tmp_path: Path) -> None:
    from tests.execution.conftest import ToyStudy, perform_here, toy_source

    damage, named = CASES["cut weights"]
    damage(model)
    result = perform_here(ToyStudy(toy_source(model, tiny_task), tmp_path).job("runs", steps=1))
    assert (result["status"], result["kind"]) == ("failed", "input")
    assert named in result["reason"]
