"""One run in several processes: what it computes is what one process computes, with every method."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.plugins import load_module
from fairtune.execution.job import Job, make_job
from fairtune.ledger.environment import read_environment
from fairtune.ledger.events import all_events, counted_events
from fairtune.methods.registry import parse_method_use, registered
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.testing.toy import make_tiny_model
from tests.conftest import forget_plugins
from tests.execution import made_texts
from tests.execution.conftest import ToyStudy, digests, perform_here, toy_source
from tests.execution.shared_runs import Shared, perform_together

pytestmark = pytest.mark.slow
SHORT = {"steps": 4, "accumulate": 2, "batch_size": 7, "evaluate": 2, "eval_examples": 31, "examples": 50}
"""In which the last batch of an epoch has one example, of which there are fewer than processes."""
MAP = {"bpsom": {"hidden": 16, "grid": 3, "reliability": 0.5, "relabel": 2, "alpha": 0.5, "prune": 1e-3}}
UNEQUAL = {"weighted_ce": {"weights": [1, 3]}}
COPIES: list[Any] = ["growing_copies", "rdrop"]
ARMS: dict[str, list[Any]] = {
    "baseline": [],
    "map": [MAP, UNEQUAL, "fgm"],
    "sequential": [{"bpsom": {**MAP["bpsom"], "update": "sequential"}}, *COPIES, "ema", "freeze"],
    "freelb": ["freelb", UNEQUAL, *COPIES, "layerwise_lr"],
    "pgd": ["pgd", "ema", "augment", "orthogonal_qk"],
    "adapters": [{"peft": {"target_modules": ["value"]}}, {"focal": {"alpha": [0.3, 0.7]}}],
    "biases": ["label_smoothing", "bitfit"],
}
"""Together they have every method."""
DIVISIBLE: dict[str, list[Any]] = {
    "whole": [],
    "halves": [UNEQUAL, "orthogonal_qk", "layerwise_lr", *COPIES],
    "biases": ["label_smoothing", "bitfit", "augment"],
    "adapted": [{"peft": {"target_modules": ["value"]}}, "focal"],
}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, tiny_task: Any) -> Iterator[ToyStudy]:
    """A toy study whose model has no dropout, so that one process and several draw nothing that could differ."""
    folder = tmp_path_factory.mktemp("calm")
    model = make_tiny_model(folder / "model")
    config = json.loads((model / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (model / "config.json").write_text(json.dumps(config))
    plugin = load_module("tests.execution.growing_copies", Path.cwd()).module
    yield ToyStudy({**toy_source(model, tiny_task), "plugins": [plugin]}, folder / "runs")
    forget_plugins()


def text_jobs(folder: Path, runs: str) -> list[Job]:
    """Of language models, in halves and whole."""
    if not (folder / "gpt").exists():
        model = made_texts.make_model(folder / "gpt")
        config = json.loads((model / "config.json").read_text())
        config |= {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
        (model / "config.json").write_text(json.dumps(config))
    study = made_texts.study_of(folder / "gpt", folder, batch_size=3)
    study |= {"arms": {"arm": {}, "freelb": {"methods": ["freelb"]}}}
    plan = make_plan(load_study(study))
    return [make_job(plan, run, folder / runs) for run in plan.runs]


def pair_job(calm: ToyStudy, runs: str) -> Job:
    train = {**calm.source["train"], "examples": {"per_class": 4}, "eval_examples": 20}
    arms = {"baseline": {}, "setfit": {"pairs": 2, "steps": 4}}
    plan = make_plan(load_study({**calm.source, "train": train, "arms": arms, "seeds": [2]}))
    return make_job(plan, next(run for run in plan.runs if run.arm == "setfit"), calm.root / runs)


def require_same_training(alone: Job, shared: Job) -> None:
    one, two = perform_here(alone), json.loads(shared.run.result.read_text())
    assert one["status"] == two["status"] == "finished", (one.get("reason"), two.get("reason"))
    expected, found = (
        [event["loss"] for event in counted_events(job.run.events) if event["event"] == "step"]
        for job in (alone, shared)
    )
    assert found == pytest.approx(expected, abs=1e-5), shared.run.path
    for split, metrics in one["metrics"].items():
        assert two["metrics"][split]["loss"] == pytest.approx(metrics["loss"], abs=1e-5), (shared.run.path, split)
    for name in ("steps", "best_step", "examples", "tokens", "padding_share"):
        assert two[name] == one[name], (shared.run.path, name)


@pytest.mark.usefixtures("calm")
def test_every_method_is_tried() -> None:
    tried = {parse_method_use(use).name for arm in ARMS.values() for use in arm}
    assert tried == {name for name in registered() if not name.startswith("clip")}


def test_every_method_and_kind_of_task_trains_to_the_same_in_two_processes(
    calm: ToyStudy, toy: ToyStudy, tmp_path: Path
) -> None:
    def jobs(runs: str) -> list[Job]:
        own = [calm.job(f"{runs}/{name}", arm, **SHORT) for name, arm in ARMS.items()]
        return [*own, pair_job(calm, runs), *text_jobs(tmp_path, runs)]

    alone, shared = jobs("alone"), jobs("shared")
    noisy, broken = (toy.job(f"noisy-{name}", [MAP, "ema"], **SHORT) for name in ("whole", "broken"))
    perform_together([*map(Shared, shared), Shared(noisy), Shared(broken, stop_at=13)], tmp_path)
    assert digests(broken.run.path) == digests(noisy.run.path), "also of what is drawn, in each process for itself"
    assert [e["unit"] for e in all_events(broken.run.events) if e["event"] == "resumed"][1] > 0
    for one, two in zip(alone, shared, strict=True):
        require_same_training(one, two)
    assert (read_environment(shared[0].run) or {})["processes"] == 2


def test_divided_weights_train_to_the_same_and_go_on_from_where_they_were_stopped(
    calm: ToyStudy, tmp_path: Path
) -> None:
    def jobs(runs: str) -> list[Job]:
        own = [calm.job(f"{runs}/{name}", arm, **SHORT) for name, arm in DIVISIBLE.items()]
        return [*own, text_jobs(tmp_path, runs)[0]]

    alone, divided, broken = jobs("alone-2"), jobs("divided"), jobs("broken")
    perform_together([*map(Shared, divided), *(Shared(job, stop_at=8) for job in broken[:2])], tmp_path, shards=True)
    for one, two in zip(alone, divided, strict=True):
        require_same_training(one, two)
    for one, two in zip(divided, broken[:2], strict=False):
        assert digests(one.run.path) == digests(two.run.path)
        assert [e["unit"] for e in all_events(two.run.events) if e["event"] == "resumed"][1] > 0
