"""One execution of a study: the plan is recorded, what is finished is kept, the rest is run."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.errors import LedgerError, Stopped
from fairtune.execution.executors.base import ENDED, NOTE, REFUSED, Executor, ExecutorFactory, JobEvent, make_executor
from fairtune.execution.failures import DISK
from fairtune.execution.smoke import smoke_reason, smoke_specs
from fairtune.execution.study_files import record_plan
from fairtune.ledger.folders import lock, require_writable
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import note_ending, note_endings
from fairtune.study.plan import Plan
from fairtune.study.run_spec import RunSpec

_default_executor: ExecutorFactory = make_executor


class Monitor(Protocol):
    """Shows a user what happens. All that it is given is plain data."""

    def begin(self, study: str, runs: int, waiting: Mapping[str, int]) -> None:
        """A study begins.

        Args:
            runs: how many it has, finished ones included.
            waiting: the runs that are still to be done, by name, each with its optimizer steps.
        """

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        """Something happened to a run; see `JobEvent` for what."""

    def stopping(self) -> None:
        """The user asked to stop; what is under way saves its state, which may take a while."""

    def end(self) -> None:
        """Nothing more will happen."""


@dataclass
class StudyOutcome:
    """What a study's execution came to.

    Args:
        failed: name of each failed run, and why.
        damaged: name of each run that is not what it was when it was closed, and what is wrong; left as it is.
    """

    finished: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    disk_full: bool = False

    def add(self, event: JobEvent) -> None:
        """Count a run that has come to its end."""
        if event.type == REFUSED:
            self.failed[event.job.name] = event.values["reason"]
        elif event.type == ENDED:
            result = event.values["result"]
            self.disk_full = self.disk_full or result.get("kind") == DISK
            if result["status"] == FINISHED:
                self.finished.append(event.job.name)
            else:
                self.failed[event.job.name] = result["reason"]


def run_plan(
    plan: Plan,
    runs: Path,
    monitor: Monitor,
    executor: Executor | None = None,
    *,
    reanalysed: bool = False,
    until_decided: int | None = None,
    arms: Collection[str] | None = None,
) -> StudyOutcome:
    """Run what is not finished yet.

    Args:
        executor: who performs the runs; None makes the one that the study asks for (`execution.on`).
        reanalysed: verdicts go by this plan, whatever was planned before results were known.
        until_decided: seeds are added look by look, up to so many; recorded with the plan.
        arms: perform the runs of these alone; the plan that is recorded is whole all the same.

    Raises:
        LedgerError: the folder cannot be written, belongs to another plan, or another process runs this study.
        DeviceError: devices that the study asks for are not there.
        Stopped: it was interrupted; what was done is saved.
    """
    require_writable(runs)
    home = runs / plan.study.study
    scratch = home / ".smoke"
    with lock(home / ".lock", f"study '{plan.study.study}' is being run by another process; see `fairtune status`."):
        jobs = [run.at(runs) for run in plan.runs]
        for job in jobs:
            job.run.check_plan(job.as_json())
        record_plan(plan, home, reanalysed, until_decided)
        note_endings(home)
        jobs = [job for job, run in zip(jobs, plan.runs, strict=True) if arms is None or run.arm in arms]
        states = {job.name: run_state(job.run, job.key, remember=True) for job in jobs}
        outcome = StudyOutcome(
            kept=[name for name, state in states.items() if state.status == FINISHED],
            damaged={name: str(state.problem) for name, state in states.items() if state.status == DAMAGED},
        )
        settled = {*outcome.kept, *outcome.damaged}
        waiting = [job for job in jobs if job.name not in settled]
        if waiting and executor is None:
            executor = _default_executor(plan.study.execution, home)  # which says what is amiss before anything begins
        monitor.begin(plan.study.study, len(jobs), {job.name: job.steps for job in waiting})
        try:
            if waiting and executor is not None:
                tested = {name.partition("/")[0] for name in outcome.kept}
                smoke = smoke_specs(waiting, scratch, tested) if plan.study.execution.on == "local" else []
                _run_jobs(executor, [*smoke, *waiting], home, outcome, monitor)
        finally:
            monitor.end()
            shutil.rmtree(scratch, ignore_errors=True)
    return outcome


def _run_jobs(executor: Executor, jobs: Sequence[RunSpec], home: Path, outcome: StudyOutcome, monitor: Monitor) -> None:
    """Have the jobs performed, and take note of what happens.

    Raises:
        Stopped: Ctrl-C or SIGTERM; whatever was under way has saved its state.
    """
    try:
        with _sigterm_as_stop():
            executor.submit(jobs)
            for event in executor.events():
                if event.job.smoke:
                    if event.is_last and (reason := smoke_reason(event)):
                        text = f"smoke test: arm {event.job.arm} fails ({reason}); its runs will fail, the other arms go on"
                        monitor.update(event.job.name, NOTE, {"text": text})
                    continue
                outcome.add(event)
                monitor.update(event.job.name, event.type, event.values)
                if event.is_last:
                    _require_there(home)
                    note_ending(home, event.job.run)
                if outcome.disk_full:
                    executor.cancel_waiting()
    except (KeyboardInterrupt, Stopped) as interruption:
        decide = getattr(executor, "interrupted", None)  # of one whose jobs can go on without this process
        acknowledge = getattr(monitor, "stopping", None)  # a monitor from before it was asked for may have none
        if decide is not None:
            monitor.end()  # bars would be drawn over the question
            decide(isinstance(interruption, KeyboardInterrupt))
        elif acknowledge is not None:
            acknowledge()
        raise Stopped from None
    finally:
        executor.stop()


def _require_there(home: Path) -> None:
    """Stop where there is nothing left to record in, rather than train for nothing."""
    if not (home / "study.json").is_file():
        raise LedgerError(
            f"{home}: the study's folder was deleted or moved away while its runs were under way, so the study was stopped. "
            "Bring it back, or run the study again from the start."
        )


@contextmanager
def _sigterm_as_stop() -> Iterator[None]:
    """SIGTERM stops a study as Ctrl-C does. Outside the main thread signals are left alone."""

    def stop(*_: object) -> None:
        raise Stopped

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        if before is not None:  # None is a handler that was not set from Python, and cannot be put back
            signal.signal(signal.SIGTERM, before)


@contextmanager
def use_executor(factory: ExecutorFactory) -> Iterator[None]:
    """Let every study that this process runs meanwhile be performed by another executor, where none is given to `run_plan`.

    This is the way for callers that reach `run_plan` through `run_study` or the command line, such as tests.
    """
    global _default_executor
    before, _default_executor = _default_executor, factory
    try:
        yield
    finally:
        _default_executor = before
