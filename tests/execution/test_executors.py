"""What a study asks of whoever performs its jobs, with executors that only act: no training, no process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import Stopped
from fairtune.execution.executors.base import ENDED, PROGRESS, REFUSED, STARTED, Executor, JobEvent
from fairtune.execution.study_run import run_plan, use_executor
from fairtune.monitor.terminal import QuietMonitor
from fairtune.study.plan import Plan, make_plan
from fairtune.study.run_spec import RunSpec
from fairtune.study.study_file import load_study
from tests.execution.conftest import ToyStudy


class Acting:
    """An executor that answers each job from a script, and notes what it is asked."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self._script, self._waiting = script, list[RunSpec]()
        self.began: list[str] = []
        self.stops = 0

    def submit(self, jobs: Sequence[RunSpec]) -> None:
        self._waiting += jobs

    def events(self) -> Iterator[JobEvent]:
        while self._waiting:
            job = self._waiting.pop(0)
            self.began.append(job.name)
            yield JobEvent(job, STARTED)
            yield JobEvent(job, PROGRESS, {"phase": "train", "step": 1, "steps": 2})
            answer = self._script.get(job.name, "finished")
            if isinstance(answer, type):
                raise answer
            if answer == "refused":
                yield JobEvent(job, REFUSED, {"reason": "no"})
            elif answer == "finished":
                yield JobEvent(job, ENDED, {"result": {"status": "finished"}})
            else:
                yield JobEvent(job, ENDED, {"result": {"status": "failed", "reason": "why", "kind": answer}})

    def cancel_waiting(self) -> None:
        self._waiting.clear()

    def stop(self) -> None:
        self.stops += 1


class Noting(QuietMonitor):
    """A monitor that notes all that it is told."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def begin(self, study: str, runs: int, waiting: Mapping[str, int]) -> None:
        self.seen.append((study, runs, dict(waiting)))

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        self.seen.append((run, event, sorted(values)))

    def end(self) -> None:
        self.seen.append("end")


@pytest.fixture
def plan(toy: ToyStudy) -> Plan:
    return make_plan(load_study({**toy.source, "arms": {"baseline": {}, "fast": {"lr": 2e-3}}, "seeds": 2}))


def names_of(plan: Plan) -> list[str]:
    return [f"{run.arm}/seed-{run.seed}" for run in plan.runs]


def test_jobs_are_given_in_the_plans_order_and_each_end_is_counted(plan: Plan, tmp_path: Path) -> None:
    names = names_of(plan)
    executor, monitor = Acting({names[1]: "error", names[2]: "refused"}), Noting()
    outcome = run_plan(plan, tmp_path / "runs", monitor, executor)
    assert executor.began == names
    assert outcome.finished == [names[0], names[3]]
    assert outcome.failed == {names[1]: "why", names[2]: "no"}
    assert not outcome.disk_full
    assert executor.stops == 1
    assert monitor.seen[0] == ("toy", 4, {name: run.steps for name, run in zip(names, plan.runs, strict=True)})
    assert [event for run, event, _ in monitor.seen[1:-1] if run == names[2]] == ["started", "progress", "refused"]
    assert monitor.seen[-1] == "end"


def test_a_full_disk_lets_nothing_more_begin(plan: Plan, tmp_path: Path) -> None:
    names = names_of(plan)
    executor = Acting({names[1]: "disk"})
    outcome = run_plan(plan, tmp_path / "runs", QuietMonitor(), executor)
    assert outcome.disk_full
    assert executor.began == names[:2]
    assert executor.stops == 1


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, Stopped])
def test_an_interruption_stops_the_executor_and_the_monitor(
    plan: Plan, tmp_path: Path, interruption: type[BaseException]
) -> None:
    executor, monitor = Acting({names_of(plan)[1]: interruption}), Noting()
    with pytest.raises(Stopped):
        run_plan(plan, tmp_path / "runs", monitor, executor)
    assert executor.stops == 1
    assert monitor.seen[-1] == "end"


def test_another_executor_is_used_only_meanwhile(plan: Plan, tmp_path: Path) -> None:
    made: list[Executor] = []

    def make(execution: Any, home: Path) -> Executor:
        assert (execution.devices, home) == (("cpu",), tmp_path / "runs" / "toy")
        made.append(Acting({}))
        return made[-1]

    with use_executor(make):
        assert len(run_plan(plan, tmp_path / "runs", QuietMonitor()).finished) == 4
        run_plan(plan, tmp_path / "runs", QuietMonitor(), Acting({}))
    assert len(made) == 1, "an executor that is given comes first"


def test_a_job_is_the_same_after_a_journey_as_json(toy: ToyStudy) -> None:
    import json

    job = toy.job("runs", ["bitfit"])
    assert RunSpec.model_validate(json.loads(json.dumps(job.as_json()))) == job
