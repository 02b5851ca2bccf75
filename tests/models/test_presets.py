"""Presets: found by name or mapping, named by what was changed, and refused clearly. Nothing here needs torch."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import ModelError
from fairtune.models.presets import PRESETS, preset_config, preset_remarks
from fairtune.models.sources import find_model
from tests.warm import light_run


def test_a_bare_name_is_the_preset_with_its_usual_settings() -> None:
    found = find_model("gpt-mini")
    assert (found.name, found.folder, found.positions, found.vocabulary) == ("gpt-mini", None, 256, None)
    assert found.preset == {"preset": "gpt-mini", "vocab_size": None, "context": 256, "dropout": 0.1}
    assert found == find_model({"preset": "gpt-mini"}) == find_model({"preset": "gpt-mini", "dropout": None})
    assert found.fetched() == found


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"preset": "gpt-mini", "vocab_size": 8000}, "gpt-mini(vocab_size=8000)"),
        ({"preset": "gpt-mini", "context": 256, "dropout": 0.1}, "gpt-mini"),
        ({"preset": "gpt-small", "context": 64, "dropout": 0}, "gpt-small(context=64, dropout=0)"),
        ({"preset": "llama-mini", "vocab_size": 99, "dropout": 0.25}, "llama-mini(vocab_size=99, dropout=0.25)"),
    ],
)
def test_the_name_says_what_was_changed_and_is_found_again(spec: dict[str, Any], name: str) -> None:
    found = find_model(spec)
    assert found.name == name
    assert find_model(name) == found


def test_everything_that_decides_the_model_is_in_its_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[dict[str, Any]] = [{}, {"vocab_size": 300}, {"vocab_size": 301}, {"context": 128}, {"dropout": 0.0}]
    found = {find_model({"preset": name, **spec}).identity for name in PRESETS for spec in specs}
    assert len(found) == len(PRESETS) * len(specs) - 1, "only llama-mini without dropout is llama-mini"
    assert all(len(identity) == 64 for identity in found)
    before = find_model("gpt-mini").identity
    monkeypatch.setattr("fairtune.models.presets.VERSION", 0)
    assert find_model("gpt-mini").identity != before


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"preset": "gpt-mimi"}, "no preset 'gpt-mimi'; known: gpt-mini, gpt-medium-512, gpt-small, llama-mini. Did you mean"),
        ({}, "a mapping needs `preset`, one of gpt-mini"),
        ({"preset": "gpt-mini", "contxt": 3}, "allowed: vocab_size, context, dropout. Did you mean 'context'"),
        ({"preset": "gpt-mini", "context": -4}, "context is -4: "),
        ("gpt-mini(vocab_size)", "settings are written as `gpt-mini(vocab_size=8000, context=128)`"),
        ("gpt-mini(vocab_size=many)", "vocab_size is 'many': "),
        ("gpt-mini(size=3)", "has no setting 'size'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_reported_with_what_is_allowed(spec: str | dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError) as caught:
        find_model(spec)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dropout_of_a_llama_is_said_to_be_of_attention_only() -> None:
    asked = find_model({"preset": "llama-mini", "dropout": 0.2}).preset or {}
    assert preset_remarks(asked) == (
        "model 'llama-mini(dropout=0.2)': llama has dropout of attention weights only; 0.2 is that.",
    )
    assert preset_config(asked)["attention_dropout"] == 0.2
    for name in PRESETS:
        assert preset_remarks(find_model(name).preset or {}) == ()


@pytest.mark.parametrize(
    ("config", "positions", "vocabulary"),
    [
        ({"model_type": "gpt2", "n_positions": 1024, "n_ctx": 512, "vocab_size": 50257}, 1024, 50257),
        ({"model_type": "llama", "max_position_embeddings": 256, "vocab_size": 32000}, 256, 32000),
        ({"model_type": "roberta", "max_position_embeddings": 514, "vocab_size": 50265}, 512, 50265),
        ({"model_type": "t5", "n_positions": 512, "vocab_size": 32128}, None, 32128),
        ({"model_type": "gemma3", "text_config": {"max_position_embeddings": 64, "vocab_size": 7}}, 64, 7),
        ({"model_type": "gpt2", "n_positions": "many", "vocab_size": None}, None, None),
    ],
)
def test_a_config_tells_positions_and_vocabulary_under_many_names(
    config: dict[str, Any], positions: int | None, vocabulary: int | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").touch()
    found = find_model(str(tmp_path))
    assert (found.positions, found.vocabulary) == (positions, vocabulary)


def test_presets_and_tokenizers_are_found_without_torch() -> None:
    code = """
import sys
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import TrainingText, find_tokenizer, fitted
tokenizer = find_tokenizer(300, find_model("gpt-mini"), TrainingText("three words", lambda: iter([["once upon a time"] * 9])))
print(fitted(find_model("gpt-mini"), tokenizer).name, {"torch", "transformers"} & set(sys.modules))
"""
    done = light_run([sys.executable, "-c", code], text=True, check=True)
    assert done.stdout.split() == ["gpt-mini(vocab_size=269)", "set()"]
