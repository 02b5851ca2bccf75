"""What a study will cost, from a short measurement of each arm."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.execution.job import make_job
from fairtune.execution.local import find_devices
from fairtune.execution.performing import prepare
from fairtune.ledger.events import EventLog
from fairtune.study.plan import Plan, PlannedRun, steps_per_epoch
from fairtune.training.evaluation import evaluate
from fairtune.training.loop import TRAIN, TrainingRun

WARM_UP, STEPS, EXAMPLES = 2, 6, 128


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
    with tempfile.TemporaryDirectory() as scratch:
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
    return prepare(job, device, EventLog(job.run.events), lambda: None).run


def _step_seconds(run: TrainingRun) -> float:
    """The median step, data loading included."""
    seconds: list[float] = []
    while run.progress.phase == TRAIN and len(seconds) < WARM_UP + STEPS:
        run.advance()
        seconds.append(run.clock.last["step"] + run.clock.last["data"])
    return statistics.median(seconds[WARM_UP:] or seconds)


def _evaluation_seconds(run: TrainingRun, plan: Plan, planned: PlannedRun) -> float:
    """All validation passes and the test pass, from a sample of validation examples."""
    sample = run.data["validation"].take(np.arange(min(EXAMPLES, len(run.data["validation"]))))
    started = time.perf_counter()
    evaluate(run.model, sample, run.device, run.methods, lambda: None)
    per_example = (time.perf_counter() - started) / len(sample)
    train = plan.study.settings(planned.arm)
    every = steps_per_epoch(train, plan.task.rows["train"]) if train.evaluate == "epoch" else train.evaluate
    passes = math.ceil(planned.steps / every)
    return per_example * (passes * len(run.data["validation"]) + len(run.data["test"]))
