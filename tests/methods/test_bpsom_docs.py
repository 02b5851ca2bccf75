"""The examples of docs/bpsom.md work as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fairtune.study.study_file import load_study
from fairtune.study.yaml_tree import parse_yaml
from tests.documented import examples, run_python

PAGE = "bpsom.md"


def test_the_study_is_valid_and_its_arms_are_the_named_ones() -> None:
    study = load_study(parse_yaml(examples(PAGE, "yaml")["In a study"]).data)
    assert [use.name for use in study.methods("bpsom")] == ["bpsom"]
    assert study.methods("bpsom-observer")[0].config.idle
    assert study.methods("baseline") == ()


def test_a_map_alone_tells_the_classes_apart() -> None:
    names = run_python(examples(PAGE, "python")["A map alone"], {}, PAGE)
    som, taken, classes = names["som"], names["examples"], names["classes"]
    labels = som.labels[som.winners(taken).cells]
    assert (labels == classes).float().mean() > 0.95
    assert som.quantisation_error(taken) < 0.2


def test_a_head_in_a_loop_learns_and_its_map_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_python(examples(PAGE, "python")["In your own loop"], {}, PAGE)
    head, encoded, labels = names["head"], names["encoded"], names["labels"]
    assert (head.eval()(encoded).argmax(1) == labels).float().mean() > 0.9
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 SOM use 0%"), "there are no labels before the first pass"
    assert not lines[-1].startswith("8 SOM use 0%")
    assert torch.isfinite(head.som.prototypes).all()


def test_a_head_in_trainer_labels_its_map_and_is_pruned(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hub_id = "google-bert/bert-base-uncased"
    names = run_python(examples(PAGE, "python")["In transformers' `Trainer`"], {hub_id: tiny_model}, PAGE)
    head = names["model"].head
    assert (head.som.labels >= 0).any()
    assert 1 <= head.units < 16, "nothing varies much after four steps"
    assert head.som.features == head.units
