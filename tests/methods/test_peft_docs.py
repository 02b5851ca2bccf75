"""The examples of docs/peft.md run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from fairtune.execution.job import make_job
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from tests.documented import examples, run_python
from tests.execution.conftest import perform_here

pytest.importorskip("peft")


def example(language: str) -> str:
    (found,) = examples("peft.md", language).values()
    return found


ARMS = list(yaml.safe_load(example("yaml"))["arms"])


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_of_the_study_trains(tiny_model: Path, tiny_task: Any, tmp_path: Path, arm: str) -> None:
    file = tmp_path / "adapters.yaml"
    source = yaml.safe_load(example("yaml"))
    whole = {**source, "task": tiny_task.as_study(), "model": str(tiny_model)}
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    small = ["train.steps=2", "train.batch_size=4", "train.max_length=16", "train.eval_examples=10", "seeds=1"]
    plan = make_plan(load_study(file, [*small, "execution.save_model=false"]))
    (run,) = (run for run in plan.runs if run.arm == arm)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    result = perform_here(make_job(plan, run, tmp_path / "runs"))
    torch.set_num_threads(threads)
    assert (result["status"], result["steps"]) == ("finished", 2), result
    share = result["parameters"]["trainable_share"]
    assert share == 1.0 if arm == "baseline" else 0.0 < share < 0.3


def test_the_loop_trains_biases(tiny_model: Path) -> None:
    names = run_python(example("python"), {"google-bert/bert-base-uncased": tiny_model}, "docs/peft.md")
    trained = [name for name, parameter in names["model"].named_parameters() if parameter.requires_grad]
    assert all(name.endswith(".bias") or name == "classifier.weight" for name in trained)
