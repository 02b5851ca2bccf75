"""Runs of a toy study, in this process and in real ones that can be killed."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import Stopped
from fairtune.core.plugins import find_plugin, load_plugin
from fairtune.study.plan import make_plan
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from fairtune.testing.toy import TaskFiles, make_tiny_model, make_tiny_task

_processes: Any = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__, "fairtune.execution.run"])  # imported once, not by each run
start_process: Any = _processes.Process
"""What makes a process of its own of a function, which `start`, `join` and `exitcode` then belong to."""
KILLED = -signal.SIGKILL
"""The exit code of a process that was ended so."""
SECONDS = 120
"""What a toy run may take before it counts as hanging."""


@dataclass
class ToyStudy:
    """A study of one arm on the toy task.

    Args:
        source: the study as a file gives it, but for its arms.
        root: folder for the runs.
    """

    source: dict[str, Any]
    root: Path

    def job(self, runs: str, methods: list[Any] | None = None, seed: int = 0, **train: Any) -> RunSpec:
        """A run of an arm with these methods.

        Args:
            runs: name of its folder under the root.
            train: settings of training.
        """
        source = {
            **self.source,
            "train": {**self.source["train"], **train},
            "arms": {"arm": {"methods": methods or []}},
        }
        plan = make_plan(load_study({**source, "seeds": [seed], "compare": {"to": "arm"}}))
        return plan.runs[0].at(self.root / runs)


def make_toy(folder: Path | str, plugins: Sequence[str | Path] = (), task: str | None = None) -> ToyStudy:
    """A toy study in a folder, with its model and its data.

    Args:
        plugins: modules that Python can import, or files.
        task: one of the catalogue or of a plug-in, in place of the toy task.
    """
    folder = Path(folder)
    names = [load_plugin(find_plugin(Path(one).name, Path(one).resolve().parent)).module for one in plugins]
    model, data = folder / "tiny-bert", folder / "toy-task"
    if not model.exists():
        data.mkdir(parents=True)
        make_tiny_task(data)
        make_tiny_model(model)
    source = toy_source(model, TaskFiles(*(data / f"{split}.csv" for split in ("train", "validation", "test"))))
    return ToyStudy(source | {"plugins": names} | ({"task": task} if task else {}), folder / "runs")


def toy_source(model: Path, task: TaskFiles) -> dict[str, Any]:
    """Two epochs of 13 steps, a state saved every 4 steps, three evaluations and a final scoring."""
    return {
        "study": "toy",
        "task": task.as_study(),
        "model": str(model),
        "train": {"epochs": 2, "batch_size": 16, "lr": 1e-3, "max_length": 32, "evaluate": 9},
        "execution": {"checkpoint_every": 4, "devices": "cpu", "workers": 1},
    }


def digests(folder: Path) -> dict[str, str]:
    """What must be bit-equal between two runs of one plan: weights and predictions, and every metric."""
    result = json.loads((folder / "result.json").read_text())
    files = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model/model.safetensors", "predictions.parquet")
    }
    return {**files, "metrics": json.dumps(result["metrics"], sort_keys=True), "best_step": str(result["best_step"])}


def perform_here(job: RunSpec, check_stop: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """A run in this process. Returns its result."""
    from fairtune.execution.run import perform_run

    return perform_run(job, "cpu", check_stop, lambda _: None)


def perform_apart(job: RunSpec, kill_at: int | None = None, stop_at: int | None = None) -> int:
    """A run in a real process of its own. Returns its exit code.

    Args:
        kill_at: kill it with SIGKILL at its so-many-th safe point (a chunk of tokens, a step, an evaluation's batch).
        stop_at: ask it to stop there instead, as SIGTERM does.
    """
    process = start_process(target=_perform_until, args=(job, kill_at, stop_at))
    process.start()
    process.join(SECONDS)
    assert process.exitcode is not None, "the run hangs"
    return int(process.exitcode)


def _perform_until(job: RunSpec, kill_at: int | None, stop_at: int | None) -> None:
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
