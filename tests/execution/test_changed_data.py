"""A file that changes between the runs of one study: never are runs on different data taken for one study."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from fairtune.core.errors import LedgerError
from fairtune.execution.study_run import run_plan
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests.execution.conftest import perform_here
from tests.execution.made_runs import study_of


def test_data_that_changes_after_the_plan_fails_the_run_with_what_to_do(
    tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    source = study_of(tiny_model, tiny_task, {"baseline": []})
    file = Path(shutil.copy(source["task"]["train"], tmp_path / "train.csv"))
    source["task"] = {**source["task"], "train": str(file)}
    plan = make_plan(load_study(source))
    file.write_text(file.read_text() + "a good film,pos\n")
    result = perform_here(plan.runs[0].at(tmp_path / "runs"))
    assert result["status"] == "failed"
    assert "the task's data changed since the study was planned; run `fairtune run` again" in result["reason"]


def test_a_model_that_changes_after_the_plan_fails_the_run_with_what_to_do(
    tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    plan = make_plan(load_study(study_of(folder, tiny_task, {"baseline": []})))
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    result = perform_here(plan.runs[0].at(tmp_path / "runs"))
    assert result["status"] == "failed"
    assert "changed since the study was planned; run `fairtune run` again to make a new plan" in result["reason"]


def test_a_study_whose_data_changed_does_not_go_on_in_the_old_folder(
    tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    source = study_of(tiny_model, tiny_task, {"baseline": []})
    file = Path(shutil.copy(source["task"]["train"], tmp_path / "train.csv"))
    source["task"] = {**source["task"], "train": str(file)}
    first = make_plan(load_study(source))
    assert perform_here(first.runs[0].at(tmp_path / "runs"))["status"] == "finished"
    file.write_text(file.read_text() + "a good film,pos\n")
    second = make_plan(load_study(source))
    assert second.hash != first.hash

    class Silent:
        def begin(self, *_: object) -> None: ...
        def update(self, *_: object) -> None: ...
        def end(self) -> None: ...

    with pytest.raises(LedgerError, match="task"):
        run_plan(second, tmp_path / "runs", Silent())
