"""What a study will cost, from a short measurement of each arm."""

from __future__ import annotations

import heapq
import math
import statistics
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from fairtune.execution.executors.slots import find_slots
from fairtune.execution.prepare import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.methods.base import Method
from fairtune.study.plan import Plan
from fairtune.study.run_spec import RunSpec
from fairtune.training.loop import TrainingRun
from fairtune.training.progress import TRAIN

WARM_UP, STEPS = 2, 6


@dataclass(frozen=True)
class Costs:
    """Seconds, measured now on this machine, by one run alone; side by side, runs also wait for memory.

    Simple baselines have no steps to measure and take seconds; they are in none of the figures.

    Args:
        total_seconds: of all runs, each begun by the first worker that is free.
        steps: optimizer steps measured for each arm.
    """

    seconds_per_step: dict[str, float]
    seconds_per_run: dict[str, float]
    total_seconds: float
    devices: int
    workers: int
    steps: int = STEPS

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def estimate_costs(plan: Plan, arms: Collection[str] | None = None) -> Costs:
    """Train each arm for a few steps and score a few examples, as a worker would, in a folder that is thrown away.

    Args:
        arms: of these alone; None is all.
    """
    per_step, per_run = {}, {}
    runs = [run for run in plan.runs if arms is None or run.arm in arms]
    with tempfile.TemporaryDirectory() as scratch:
        slots = find_slots(plan.study.execution, [run.at(Path(scratch)) for run in runs])[: len(runs)]
        with _threads(slots[0].threads):
            for arm in (arm for arm in plan.trained if arms is None or arm in arms):
                planned = next(run for run in plan.runs if run.arm == arm)
                started = time.perf_counter()
                run = _ready(planned, slots[0].device, Path(scratch))
                setup = time.perf_counter() - started
                per_step[arm] = _step_seconds(run)
                per_run[arm] = setup + planned.steps * per_step[arm] + _evaluation_seconds(run, plan, planned)
                run.log.close()
                run.accelerator.free_memory()
    total = _total_seconds([per_run[run.arm] for run in runs if run.arm in per_run], len(slots))
    return Costs(per_step, per_run, total, len({slot.device for slot in slots}), len(slots))


def _total_seconds(runs: Sequence[float], workers: int) -> float:
    """How long runs take that are begun in this order, each by the first worker that is free."""
    free_at = [0.0] * workers
    for seconds in runs:
        heapq.heapreplace(free_at, free_at[0] + seconds)
    return max(free_at)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Measure with as many threads as a worker has."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _ready(planned: RunSpec, device: str, scratch: Path) -> TrainingRun:
    job = planned.model_copy(update={"checkpoint_every": "24h"}).at(scratch)
    job.run.path.mkdir(parents=True)
    return prepare_run(job, device, EventLog(job.run.events), lambda: None).run


def _step_seconds(run: TrainingRun) -> float:
    """The median step, data loading included."""
    seconds: list[float] = []
    while run.progress.phase == TRAIN and len(seconds) < WARM_UP + STEPS:
        run.advance()
        seconds.append(run.clock.last["step"] + run.clock.last["data"])
    return statistics.median(seconds[WARM_UP:] or seconds)


def _evaluation_seconds(run: TrainingRun, plan: Plan, planned: RunSpec) -> float:
    """All validation passes, those over the test split, and those of methods over the training examples, from a sample of each."""
    train = plan.study.settings(planned.arm)
    every = run.steps_per_epoch if train.evaluate == "epoch" else train.evaluate
    tests = 2 if run.objective.scores_final else 1
    scoring = math.ceil(planned.steps / every) * _pass_seconds(run, "validation") + tests * _pass_seconds(run, "test")
    return scoring + planned.steps // run.steps_per_epoch * epoch_seconds(run)


def epoch_seconds(run: TrainingRun) -> float:
    """What methods do after each epoch: passes over the training examples, by a sample of them."""
    passes = sum(type(method).after_epoch is not Method.after_epoch for method in run.methods)
    return passes * _pass_seconds(run, "train") if passes else 0.0


def _pass_seconds(run: TrainingRun, split: str) -> float:
    sample, times = run.objective.sample(split)
    started = time.perf_counter()
    sample.evaluate(run.model, split, run.device, run.methods, lambda: None)
    return (time.perf_counter() - started) * times
