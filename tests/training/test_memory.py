"""Memory is counted: the same run needs the same, whatever its process did before."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from fairtune.core.errors import Stopped
from fairtune.training.memory import COUNTED
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401 - a fixture


def memory_of(job: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(job.run.result.read_text())["memory"]
    return found


def test_a_run_needs_the_same_whatever_ran_before_in_its_process(toy: ToyStudy) -> None:  # noqa: F811
    first, again = toy.job("first", steps=4), toy.job("again", steps=4)
    perform_here(first)
    large = torch.ones(200_000_000)
    perform_here(again)
    del large
    assert memory_of(first) == memory_of(again)
    parameters = json.loads(first.run.card.read_text())["parameters"]["total"]
    found = memory_of(first)
    assert found["kind"] == COUNTED
    assert found["peak_bytes"] == sum(found["parts"].values())
    assert found["parts"]["gradients"] == 4 * parameters
    assert found["parts"]["weights"] >= 4 * parameters
    assert 8 * parameters <= found["parts"]["optimizer"] < 8 * parameters + 4096, "two moments, and a count per tensor"
    assert found["parts"]["methods"] == 0
    assert found["parts"]["activations"] > 0


def test_what_methods_save_and_cost_shows(toy: ToyStudy) -> None:  # noqa: F811
    jobs = {
        "plain": toy.job("plain", steps=2),
        "frozen": toy.job("frozen", [{"orthogonal_qk": {"init": "headwise"}}], steps=2),
        "ema": toy.job("ema", ["ema"], steps=2),
    }
    for job in jobs.values():
        perform_here(job)
    parts = {name: memory_of(job)["parts"] for name, job in jobs.items()}
    assert parts["frozen"]["optimizer"] < parts["plain"]["optimizer"]
    assert parts["frozen"]["gradients"] < parts["plain"]["gradients"]
    assert parts["ema"]["methods"] >= 0.9 * parts["ema"]["gradients"], "a copy of the trainable weights"
    assert parts["ema"]["activations"] == parts["plain"]["activations"]


def test_larger_batches_keep_more(toy: ToyStudy) -> None:  # noqa: F811
    small, large = toy.job("small", steps=2, batch_size=4), toy.job("large", steps=2, batch_size=32)
    for job in (small, large):
        perform_here(job)
    assert memory_of(large)["parts"]["activations"] > 4 * memory_of(small)["parts"]["activations"]


def test_a_run_that_goes_on_knows_what_it_had(toy: ToyStudy) -> None:  # noqa: F811
    whole, stopped = toy.job("whole"), toy.job("stopped")
    perform_here(whole)
    looks = 0

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == 30:
            raise Stopped

    with pytest.raises(Stopped):
        perform_here(stopped, check_stop)
    perform_here(stopped)
    assert memory_of(stopped) == memory_of(whole)
