"""One run in several processes: what it computes is what one process computes, with every method."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from fairtune.ledger.events import counted_events
from fairtune.methods.registry import registered
from fairtune.testing.checks import toy_use
from fairtune.testing.toy import make_tiny_model
from tests.execution.conftest import ToyStudy, perform_here, toy_source
from tests.execution.shared_runs import perform_together

pytestmark = pytest.mark.slow
SHORT = {"steps": 6, "accumulate": 2, "batch_size": 7, "evaluate": 3, "eval_examples": 31, "examples": 60}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, tiny_task: Any) -> ToyStudy:
    """A toy study whose model has no dropout, so that one process and several draw nothing that could differ."""
    folder = tmp_path_factory.mktemp("calm")
    model = make_tiny_model(folder / "model")
    config = json.loads((model / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (model / "config.json").write_text(json.dumps(config))
    return ToyStudy(toy_source(model, tiny_task), folder / "runs")


ARMS: dict[str, list[Any]] = {
    "baseline": [],
    **{name: [toy_use(name)] for name in registered() if name not in ("rdrop",)},
}


def losses(job: Any) -> list[float]:
    return [event["loss"] for event in counted_events(job.run.events) if event["event"] == "step"]


def test_every_method_trains_to_the_same_in_two_processes(calm: ToyStudy, tmp_path: Path) -> None:
    alone = {name: calm.job(f"alone/{name}", arm, **SHORT) for name, arm in ARMS.items()}
    shared = {name: calm.job(f"shared/{name}", arm, **SHORT) for name, arm in ARMS.items()}
    perform_together(list(shared.values()), tmp_path)
    wrong = {}
    for name in ARMS:
        one = perform_here(alone[name])
        two = json.loads(shared[name].run.result.read_text())
        assert one["status"] == two["status"] == "finished", (name, one.get("reason"), two.get("reason"))
        expected, found = losses(alone[name]), losses(shared[name])
        gap = max(abs(a - b) for a, b in zip(expected, found, strict=True))
        gap = max(gap, abs(one["metrics"]["test"]["loss"] - two["metrics"]["test"]["loss"]))
        if gap > 1e-5:
            wrong[name] = gap, expected, found
    assert not wrong, wrong
