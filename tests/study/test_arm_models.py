"""An arm may start from a checkpoint of its own: it is planned, audited and run as such, and refused where it means nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """Another checkpoint: a random BERT of three layers."""
    import torch
    from transformers import BertConfig, BertModel

    from fairtune.testing.toy import VOCABULARY, make_tokenizer

    folder = tmp_path / "other-bert"
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32
    )
    with torch.random.fork_rng():
        BertModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def study(model: Path, task: Any, arms: dict[str, Any], **more: Any) -> dict[str, Any]:
    train = {"steps": 2, "batch_size": 8, "max_length": 32}
    source = {"study": "toy", "task": task.as_study(), "model": str(model), "train": train, "seeds": [0], "arms": arms}
    return {**source, "execution": {"devices": "cpu"}, **more}


def test_each_arm_is_planned_with_its_own_model(tiny_model: Path, other_model: Path, tiny_task: Any) -> None:
    plan = make_plan(load_study(study(tiny_model, tiny_task, {"baseline": {}, "other": {"model": str(other_model)}})))
    ours, theirs = sorted(plan.runs, key=lambda run: run.arm)
    assert ours.settings.model != theirs.settings.model
    assert theirs.model.folder == str(other_model)
    assert [(d.arm, d.setting) for d in plan.differences] == [("other", "model")]
    answer = plan.as_json()["arms"]
    assert answer["other"]["train"]["model"] != answer["baseline"]["train"]["model"]


def test_models_are_told_apart_by_what_they_are_not_by_their_names(
    tiny_model: Path, other_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    """Plan, audit and results go by one rule: two models of one name differ, one model in two folders does not."""
    for folder, model in (("first", tiny_model), ("second", other_model), ("third", tiny_model)):
        shutil.copytree(model, tmp_path / folder / "bert")
    arms: dict[str, Any] = {
        "baseline": {"model": str(tmp_path / "first" / "bert")},
        "trick": {"model": str(tmp_path / "second" / "bert"), "methods": ["bitfit"]},
        "same": {"model": str(tmp_path / "third" / "bert"), "methods": ["bitfit"]},
    }
    plan = make_plan(load_study(study(tiny_model, tiny_task, arms)))
    assert [(d.arm, d.setting) for d in plan.differences] == [("trick", "model")]
    assert plan.controls == {"baseline": None, "trick": None, "same": "baseline"}
    found = {arm: facts["train"]["model"] for arm, facts in plan.as_json()["arms"].items()}
    assert found["baseline"] == found["same"] == f"bert@{plan.models['same'].identity[:8]}"
    assert found["trick"] == f"bert@{plan.models['trick'].identity[:8]}"


def test_runs_of_two_models_are_performed_and_compared(
    tiny_model: Path, other_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    from fairtune.analysis.results import load_results
    from fairtune.execution.study_files import record_plan
    from tests.execution.conftest import perform_here

    plan = make_plan(load_study(study(tiny_model, tiny_task, {"baseline": {}, "other": {"model": str(other_model)}})))
    record_plan(plan, tmp_path / "runs" / "toy")
    for run in plan.runs:
        assert perform_here(run.at(tmp_path / "runs"))["status"] == "finished"
    found = load_results(tmp_path / "runs", "toy").comparison("other")
    assert found is not None
    assert found.confounds == ("model",)


@pytest.mark.parametrize(
    ("arm", "more", "reason"),
    [
        ({"model": "gpt-mini"}, {}, "'gpt-mini' is a preset"),
        ({"model": "minilm"}, {"tokenizer": {"train": 500}}, "the study's `tokenizer` is for its own model"),
    ],
)
def test_what_an_arm_cannot_start_from_is_refused(
    tiny_model: Path, tiny_task: Any, arm: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    with pytest.raises(FairtuneError, match=reason):
        load_study(study(tiny_model, tiny_task, {"baseline": {}, "other": arm}, **more))


def test_language_models_share_one_model(tiny_model: Path) -> None:
    source = {
        "study": "toy", "task": "tinystories", "model": str(tiny_model),
        "arms": {"baseline": {}, "other": {"model": "minilm"}},
    }  # fmt: skip
    with pytest.raises(FairtuneError, match="language models share one model"):
        load_study(source)
