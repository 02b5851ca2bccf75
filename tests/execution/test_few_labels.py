"""Runs of few labels train on the sample of their seed, whatever arm they are of, and go on with it after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtune.execution.prepare import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.tasks import load_task
from fairtune.tasks.splits import class_sample
from fairtune.testing.runs import KILLED
from fairtune.training.classification import Classification
from tests.execution.conftest import ToyStudy, digests, perform_apart, perform_here

FEW = {"per_class": 5, "resample": "seed"}


def sample_of(job: Any) -> tuple[str, ...]:
    job.run.path.mkdir(parents=True)
    log = EventLog(job.run.events)
    objective = prepare_run(job, "cpu", log, lambda: None).run.objective
    log.close()
    assert isinstance(objective, Classification)
    assert objective.texts is not None
    assert objective.texts.split.ids == objective.data["train"].ids, "also where methods change the texts"
    return objective.data["train"].ids


def test_all_arms_of_a_seed_train_on_its_sample(toy: ToyStudy, tmp_path: Path) -> None:
    source = {
        **toy.source,
        "train": {**toy.source["train"], "examples": FEW},
        "arms": {"baseline": {}, "frozen": {"methods": ["bitfit"]}},
        "aa": True,
        "seeds": [0, 4],
    }
    plan = make_plan(load_study(source))
    split = load_task(**plan.study.data()).splits["train"]
    found = {run.name: sample_of(run.at(tmp_path / "samples")) for run in plan.runs}
    assert found == {run.name: class_sample(split, 5, run.seed).ids for run in plan.runs}
    assert len(found) == 6, "the copy of the reference too"
    assert len(set(found.values())) == 2


def test_a_killed_run_goes_on_with_its_sample(toy: ToyStudy) -> None:
    train = {"examples": FEW, "epochs": 6, "batch_size": 4, "eval_examples": 10}
    whole, killed = toy.job("whole", seed=3, **train), toy.job("killed", seed=3, **train)
    result = perform_here(whole)
    assert (result["status"], result["steps"], result["examples"]) == ("finished", 18, 60)
    assert perform_apart(killed, kill_at=16) == KILLED
    assert perform_here(killed)["status"] == "finished"
    assert digests(whole.run.path) == digests(killed.run.path)
