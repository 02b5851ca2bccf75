"""What a study will cost, from a short measurement of each arm."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.core.folders import temporary_folder
from fairtune.execution.executors.local import find_devices
from fairtune.execution.job import make_job
from fairtune.execution.run import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.methods.base import Method
from fairtune.study.plan import Plan, PlannedRun
from fairtune.training.loop import TrainingRun
from fairtune.training.progress import TRAIN

WARM_UP, STEPS = 2, 6


@dataclass(frozen=True)
class Costs:
    """Seconds, measured now on this machine.

    Args:
        steps: optimizer steps measured for each arm.
    """

    seconds_per_step: dict[str, float]
    seconds_per_run: dict[str, float]
    total_seconds: float
    devices: int
    steps: int = STEPS

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def estimate_costs(plan: Plan) -> Costs:
    """Train each arm for a few steps and score a few examples, in a folder that is thrown away."""
    devices = find_devices(plan.study.execution.devices)
    per_step, per_run = {}, {}
    with temporary_folder() as scratch:
        for arm in plan.study.arms:
            planned = next(run for run in plan.runs if run.arm == arm)
            started = time.perf_counter()
            run = _ready(plan, planned, devices[0], Path(scratch))
            setup = time.perf_counter() - started
            per_step[arm] = _step_seconds(run)
            per_run[arm] = setup + planned.steps * per_step[arm] + _evaluation_seconds(run, plan, planned)
            run.log.close()
            run.accelerator.free_memory()
    total = sum(per_run[run.arm] for run in plan.runs) / len(devices)
    return Costs(per_step, per_run, total, len(devices))


def _ready(plan: Plan, planned: PlannedRun, device: str, scratch: Path) -> TrainingRun:
    job = replace(make_job(plan, planned, scratch), checkpoint_every="24h")
    job.run.path.mkdir(parents=True)
    return prepare_run(job, device, EventLog(job.run.events), lambda: None).run


def _step_seconds(run: TrainingRun) -> float:
    """The median step, data loading included."""
    seconds: list[float] = []
    while run.progress.phase == TRAIN and len(seconds) < WARM_UP + STEPS:
        run.advance()
        seconds.append(run.clock.last["step"] + run.clock.last["data"])
    return statistics.median(seconds[WARM_UP:] or seconds)


def _evaluation_seconds(run: TrainingRun, plan: Plan, planned: PlannedRun) -> float:
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
