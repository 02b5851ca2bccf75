"""The smoke test: two steps of an arm with its checkpoint between them, so that a broken arm is known before hours are spent."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtune.core.errors import RunFailure, Stopped
from fairtune.execution.executors.base import Executor, JobEvent, make_executor
from fairtune.execution.failures import failure_reason
from fairtune.ledger.events import EventLog
from fairtune.study.run_spec import RunSpec

if TYPE_CHECKING:
    from fairtune.study.plan import Plan

LONG = 200
"""Optimizer steps of a study from which a smoke test comes first; a shorter one shows a broken arm itself in that time."""
SCHEDULE = {"lr", "epochs", "steps", "warmup", "schedule", "weight_decay", "betas", "clip", "patience"}
"""Settings that cannot break an arm that runs with other values of them."""


@dataclass(frozen=True)
class Smoked:
    """What the smoke test of an arm came to; no reason where it passed."""

    arm: str
    seconds: float
    reason: str | None = None


def smoke_specs(jobs: Sequence[RunSpec], scratch: Path, tested: Collection[str] = ()) -> list[RunSpec]:
    """A smoke test of every way in which these runs train; none of a short study, and none where all train in one way.

    Args:
        scratch: a folder for checkpoints.
        tested: arms that have finished a run.
    """
    if sum(job.steps for job in jobs) < LONG:
        return []
    different: dict[str, RunSpec] = {}
    for job in jobs:
        if job.arm not in tested and not job.settings.is_simple:
            kind = job.settings.model_dump(exclude={"seed": True, "sample": True, "train": SCHEDULE})
            different.setdefault(str(kind), job)
    found = [job.model_copy(update={"smoke": True}).at(scratch) for job in different.values()]
    return found if len(found) > 1 else []


def smoke_arms(plan: Plan, arms: Collection[str] | None = None, executor: Executor | None = None) -> list[Smoked]:
    """Smoke-test every arm that is trained, or some of them, on this machine; nothing is recorded."""
    execution = plan.study.execution.model_copy(update={"on": "local"})
    with tempfile.TemporaryDirectory() as scratch:
        first = {run.arm: run for run in reversed(plan.runs) if not run.settings.is_simple}
        jobs = [run for arm, run in first.items() if arms is None or arm in arms]
        performer = executor or make_executor(execution, Path(scratch))
        found = {}
        try:
            performer.submit([job.model_copy(update={"smoke": True}).at(Path(scratch)) for job in jobs])
            for event in performer.events():
                if event.is_last:
                    found[event.job.arm] = Smoked(event.job.arm, _seconds(event), smoke_reason(event))
        finally:
            performer.stop()
    return [found[arm] for arm in plan.study.arms if arm in found]


def smoke_reason(event: JobEvent) -> str | None:
    """Why a smoke test failed; None where it passed."""
    said = event.values.get("result", event.values)
    return None if said.get("status") == "finished" else str(said.get("reason"))


def _seconds(event: JobEvent) -> float:
    return float(event.values.get("result", {}).get("seconds", 0.0))


def perform_smoke(spec: RunSpec, device: str, check_stop: Callable[[], None]) -> dict[str, Any]:
    """Take a step, save the state, resume it and take another; all that is written is removed. Returns its result."""
    from fairtune.core.out_of_memory import free_memory
    from fairtune.execution.prepare import prepare_run

    began = time.monotonic()
    try:
        spec.run.begin(spec.as_json())
        log = EventLog(spec.run.events)
        try:
            for steps in range(2):
                run = prepare_run(spec, device, log, check_stop).run
                if run.progress.step != steps:
                    raise RunFailure("its state after one step cannot be resumed from its checkpoint")
                run.advance()
                run.save()
        finally:
            log.close()
            free_memory()
    except Stopped:
        raise
    except Exception as error:
        return {"status": "failed", "reason": failure_reason(error)}
    finally:
        shutil.rmtree(spec.run.path, ignore_errors=True)
    return {"status": "finished", "seconds": round(time.monotonic() - began, 2)}
