"""Runs of `setfit`: pairs in the same loop as every run, its head beside an encoder that plain transformers loads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertModel

from fairtune.core.errors import FairtuneError
from fairtune.execution.executors.memory_estimate import estimate_memory
from fairtune.learners.registry import load_learner
from fairtune.ledger.events import counted_events
from fairtune.ledger.predictions import Predictions, read_predictions
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from fairtune.testing.runs import KILLED
from fairtune.testing.toy import make_tokenizer
from fairtune.training.contrastive import Contrastive
from tests.execution.conftest import ToyStudy, digests, perform_apart, perform_here

FEW = {"per_class": 6, "resample": "seed"}


def planned(toy: ToyStudy, arm: dict[str, Any] | None = None, **train: Any) -> Plan:
    settings = {**toy.source["train"], "epochs": 7, "evaluate": "epoch", "examples": FEW, "eval_examples": 40, **train}
    arms = {"baseline": {}, "setfit": {"pairs": 4, **(arm or {})}}
    return make_plan(load_study({**toy.source, "train": settings, "arms": arms, "seeds": [2]}))


def job_of(toy: ToyStudy, runs: str, arm: dict[str, Any] | None = None, **train: Any) -> RunSpec:
    plan = planned(toy, arm, **train)
    return next(run for run in plan.runs if run.arm == "setfit").at(toy.root / runs)


@pytest.fixture(scope="module")
def finished(
    tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunSpec, dict[str, Any]]:
    from tests.execution.conftest import toy_source

    toy = ToyStudy(toy_source(tiny_model, tiny_task), tmp_path_factory.mktemp("setfit"))
    job = job_of(toy, "runs", {"epochs": 3})
    return job, perform_here(job)


def test_a_pass_is_over_its_pairs_and_there_is_one_unless_the_arm_says_otherwise(toy: ToyStudy) -> None:
    steps = {run.arm: run.steps for run in planned(toy).runs}
    assert steps == {"baseline": 7, "setfit": 6}, "12 texts in one batch, seven times; 96 pairs in batches of 16, once"
    for arm, expected in (({"epochs": 2}, 12), ({"steps": 5}, 5), ({"pairs": None}, 30)):
        assert {run.arm: run.steps for run in planned(toy, arm).runs}["setfit"] == expected
    assert {run.arm: run.steps for run in planned(toy, examples=20).runs}["setfit"] == 10


def test_a_run_learns_to_tell_pairs_apart_and_scores_with_probabilities(
    finished: tuple[RunSpec, dict[str, Any]],
) -> None:
    job, result = finished
    assert result["status"] == "finished", result
    assert (result["steps"], result["examples"]) == (18, 3 * 96)
    losses = [event["loss"] for event in counted_events(job.run.events) if event["event"] == "step"]
    assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[:4])
    found = read_predictions(job.run.predictions, "test")
    assert isinstance(found, Predictions)
    assert np.exp(found.scores).sum(axis=1) == pytest.approx(np.ones(40), abs=1e-5)
    assert result["metrics"]["test"]["accuracy"] == np.mean(found.scores.argmax(axis=1) == found.labels)
    known = result["learner"]
    assert (known["name"], known["examples"], known["pairs"], known["features"]) == ("setfit", 12, 4, 32)
    assert set(known["chosen"]) == {"C"}


def test_its_card_shows_an_untouched_encoder_of_which_only_the_unread_pooler_is_frozen(
    finished: tuple[RunSpec, dict[str, Any]],
) -> None:
    card = json.loads(finished[0].run.card.read_text())
    assert (card["changed"], card["new"], card["unverified"]) == ([], [], [])
    assert card["frozen"] == ["bert.pooler.dense.weight", "bert.pooler.dense.bias"]
    assert card["same"] == 39


def test_the_folder_is_an_encoder_for_plain_transformers_with_its_head_beside_it(
    finished: tuple[RunSpec, dict[str, Any]], tiny_task: Any
) -> None:
    job, _ = finished
    encoder, head = AutoModel.from_pretrained(job.run.model).eval(), load_learner(job.run.model)
    assert isinstance(encoder, BertModel)
    assert head[1]["labels"] == ["neg", "pos"]
    found = read_predictions(job.run.predictions, "test")
    texts = {f"test-{i}": line.rpartition(",")[0] for i, line in enumerate(tiny_task.test.read_text().splitlines())}
    tokens = AutoTokenizer.from_pretrained(job.run.model)(
        [texts[name] for name in found.ids], padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        states = encoder(**tokens).last_hidden_state
    real = tokens["attention_mask"][..., None]
    vectors = ((states * real).sum(dim=1) / real.sum(dim=1)).numpy()
    assert head[0].scores(vectors) == pytest.approx(found.scores, abs=1e-4)


def test_a_killed_run_ends_in_the_same_bits(finished: tuple[RunSpec, dict[str, Any]], toy: ToyStudy) -> None:
    job = finished[0].model_copy(update={"folder": str(toy.root / "killed")})
    assert perform_apart(job, kill_at=14) == KILLED
    assert perform_here(job)["status"] == "finished"
    assert digests(job.run.path) == digests(finished[0].run.path)
    kept = [(one.run.model / "learner.safetensors").read_bytes() for one in (job, finished[0])]
    assert kept[0] == kept[1]


def test_the_loss_is_the_squared_distance_of_the_cosine_from_one_or_zero() -> None:
    vectors = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [3.0, 3.0]])
    objective = Contrastive({}, "accuracy", (), 1)
    found = objective.outputs(lambda **_: vectors, {"labels": torch.tensor([0.0, 1.0])})  # type: ignore[arg-type]
    assert found.similarities.tolist() == pytest.approx([0.0, 1.0])
    assert float(found.loss) == pytest.approx(0.0, abs=1e-6)
    other = objective.outputs(lambda **_: vectors, {"labels": torch.tensor([1.0, 0.0])})  # type: ignore[arg-type]
    assert float(other.loss) == pytest.approx(1.0)


def test_a_gpt_like_model_learns_from_pairs_too(toy: ToyStudy, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    words = make_tokenizer()
    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
    GPT2Model(GPT2Config(vocab_size=len(words), **sizes)).save_pretrained(tmp_path / "gpt")
    words.save_pretrained(tmp_path / "gpt")
    job = job_of(replace(toy, source={**toy.source, "model": str(tmp_path / "gpt")}), "gpt")
    result = perform_here(job)
    assert result["status"] == "finished", result
    assert type(AutoModel.from_pretrained(job.run.model)).__name__ == "GPT2Model"


def test_a_batch_of_pairs_is_twice_as_many_texts_for_memory_and_for_steps(toy: ToyStudy) -> None:
    plan = planned(toy)
    jobs = {run.arm: run.at(toy.root) for run in plan.runs}
    assert estimate_memory(jobs["setfit"]) > estimate_memory(jobs["baseline"])
    assert plan.as_json()["arms"]["setfit"]["step_factor"] == 2


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ({"baseline": {"pairs": 3}}, "arms.baseline.pairs: only 'setfit' learns from pairs; remove it"),
        (
            {"baseline": {}, "setfit": {"pairs": 0}},
            "arms.setfit.pairs: found 0; allowed: a whole number from 1 to 1,000",
        ),
        ({"baseline": {}, "setfit": {"methods": ["focal"]}}, "'setfit' is the name of a simple baseline"),
    ],
)
def test_what_a_study_may_not_say_of_pairs(toy: ToyStudy, arms: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study({**toy.source, "arms": arms})
    assert words in str(refused.value)


def test_one_example_per_class_makes_no_pair(toy: ToyStudy) -> None:
    with pytest.raises(
        FairtuneError, match=r"arm 'setfit': setfit learns from pairs .* per_class 1 there are none; use 2 or more"
    ):
        planned(toy, examples={"per_class": 1, "resample": "seed"})
