"""`fairtune data prepare`: what a study needs is made once, ahead of training, and reported with its size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.tasks.made_tokenizers import STORIES, byte_level
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.tokens.blocks import token_blocks


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))


def call(*words: object) -> Any:
    return CliRunner().invoke(app, ["data", "prepare", *map(str, words)])


@pytest.fixture(scope="module")
def tiny_gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random GPT-2 of one layer and a byte-level tokenizer without a padding token."""
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "tiny-gpt"
    GPT2Model(GPT2Config(vocab_size=400, n_embd=8, n_layer=1, n_head=1, n_positions=64)).save_pretrained(folder)
    byte_level().save_pretrained(folder)
    return folder


@pytest.fixture
def text_study(tmp_path: Path, tiny_gpt: Path) -> Path:
    (tmp_path / "stories.txt").write_text("\n\n".join(STORIES), encoding="utf-8")
    source = {
        "study": "stories",
        "task": {"kind": "language_model", "name": "stories", "train": "stories.txt"},
        "model": str(tiny_gpt),
        "train": {"tokens": "0.5k"},
        "arms": {"baseline": {}, "less": {"tokens": 200}, "same": {"lr": 1.0e-3}},
        "profiles": {"all": {"train": {"tokens": None}}},
    }
    file = tmp_path / "stories.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


@pytest.fixture
def class_study(tmp_path: Path, tiny_model: Path, tiny_task: Any) -> Path:
    source = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"max_length": 32},
        "arms": {"baseline": {}, "short": {"max_length": 8}, "same": {"lr": 1.0e-3}},
    }
    file = tmp_path / "toy.yaml"
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


def test_token_blocks_are_made_once_for_each_split_and_limit(text_study: Path) -> None:
    first = json.loads(call(text_study, "--json").output)
    assert first["made"]
    assert first["source"].startswith("files stories.txt; validation is 0.1 of the training text")
    blocks = [step for step in first["steps"] if step["what"].startswith("token blocks")]
    assert [step["what"] for step in blocks] == [
        "token blocks, train, the first 500",
        "token blocks, train, the first 200",
        "token blocks, validation",
        "token blocks, test",
    ]
    assert [step["counts"]["tokens"] for step in blocks[:2]] == [500, 200]
    assert all(step["made"] and step["size"] > 0 and step["counts"]["words"] > 0 for step in blocks)

    again = call(text_study)
    assert "Everything was there already." in again.output
    assert "new," not in again.output
    assert f"in {Path(first['cache'])}" in again.output

    corpus = load_corpus({"kind": "language_model", "train": str(text_study.parent / "stories.txt")})
    found = token_blocks(corpus, "test", byte_level())
    assert found.counts.tokens == blocks[3]["counts"]["tokens"], "the same that a program gets"


def test_a_task_is_read_and_tokenised_for_each_length(class_study: Path) -> None:
    first = json.loads(call(class_study, "--json").output)
    assert [step["what"] for step in first["steps"]] == [
        "data, read and checked",
        "model tiny-bert",
        "tokens, at most 32 per example",
        "tokens, at most 8 per example",
    ]
    assert first["steps"][0]["counts"] == {"train": 200, "validation": 60, "test": 60}
    assert first["steps"][2]["counts"]["examples"] == 320
    assert first["steps"][3]["counts"]["tokens"] < first["steps"][2]["counts"]["tokens"]
    assert [step["made"] for step in first["steps"]] == [True, False, True, True]
    again = json.loads(call(class_study, "--json").output)
    assert not again["made"]
    assert [step["size"] > 0 for step in first["steps"]] == [True, False, True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model=minilm", "the tokenizer has no end-of-text token (EOS)"),
        ("task.train=gone.txt", "gone.txt: there is no such file"),
        ("task.label=label", "label: text for language models has no labels"),
        ("task=tinystory", "task 'tinystory': not in the catalogue"),
    ],
)
def test_mistakes_are_reported_in_a_sentence(text_study: Path, change: str, message: str) -> None:
    answer = call(text_study, "--set", change)
    assert answer.exit_code == 2, answer.output
    assert message in answer.output
    assert "Traceback" not in answer.output


def test_what_was_prepared_is_what_a_plan_stands_on(text_study: Path) -> None:
    made = {step["what"]: step["counts"] for step in json.loads(call(text_study, "--json").output)["steps"]}
    answer = CliRunner().invoke(app, ["plan", str(text_study), "--json"])
    assert answer.exit_code == 0, answer.output
    plan = json.loads(answer.output)
    assert plan["tokenizer"]["vocabulary"] == made["tokenizer tiny-gpt"]["tokens"]
    for split in ("validation", "test"):
        assert {**made[f"token blocks, {split}"], "cut": False} == plan["task"]["counts"][split]
    assert plan["task"]["counts"]["train"]["tokens"] == 500
