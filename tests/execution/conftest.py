"""Runs of a toy study, in this process and in real ones that can be killed."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import Stopped
from fairtune.execution.job import Job, make_job
from fairtune.study.loading import load_study
from fairtune.study.plan import make_plan
from tests.warm import WarmProcess


def digests(folder: Path) -> dict[str, str]:
    """What must be bit-equal between two runs of one plan: weights and predictions, and every metric."""
    import json

    result = json.loads((folder / "result.json").read_text())
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model/model.safetensors", "predictions.parquet")
    }
    return {**files, "metrics": json.dumps(result["metrics"], sort_keys=True), "best_step": str(result["best_step"])}


@dataclass
class ToyStudy:
    """A study of one arm on the toy task."""

    source: dict[str, Any]
    root: Path

    def job(self, runs: str, methods: list[Any] | None = None, seed: int = 0, **train: Any) -> Job:
        source = {
            **self.source,
            "train": {**self.source["train"], **train},
            "arms": {"arm": {"methods": methods or []}},
        }
        plan = make_plan(load_study({**source, "seeds": [seed], "compare": {"to": "arm"}}))
        return make_job(plan, plan.runs[0], self.root / runs)


def toy_source(model: Path, task: Any) -> dict[str, Any]:
    """Two epochs of 13 steps, a state saved every 4 steps, three evaluations and a final scoring."""
    return {
        "study": "toy",
        "task": task.as_study(),
        "model": str(model),
        "train": {"epochs": 2, "batch_size": 16, "lr": 1e-3, "max_length": 32, "evaluate": 9},
        "execution": {"checkpoint_every": 4, "devices": "cpu"},
    }


@pytest.fixture
def toy(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> ToyStudy:
    """A study of the tiny model on the toy task."""
    return ToyStudy(toy_source(tiny_model, tiny_task), tmp_path)


def perform_here(job: Job, check_stop: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """A run in this process."""
    from fairtune.execution.performing import perform

    return perform(job, "cpu", check_stop, lambda _: None)


def _perform_until(job: Job, kill_at: int | None, stop_at: int | None) -> None:
    """In a process of its own: perform a run; at a given look for signals, be killed, or be asked to stop."""
    import torch

    torch.set_num_threads(1)
    looks = 0

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if looks == stop_at:
            raise Stopped

    perform_here(job, check_stop)


def perform_apart(job: Job, kill_at: int | None = None, stop_at: int | None = None) -> int:
    """A run in a real process of its own. Returns its exit code.

    Args:
        kill_at: kill it with SIGKILL at its so-many-th safe point (a chunk of tokens, a step, an evaluation's batch).
        stop_at: ask it to stop there instead, as SIGTERM does.
    """
    process = WarmProcess(target=_perform_until, args=(job, kill_at, stop_at))
    process.start()
    process.join(120)
    assert process.exitcode is not None, "the run hangs"
    return process.exitcode
