"""Conducting a study: the plan is recorded, what is finished is kept, the rest is run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairtune.core.errors import LedgerError, Stopped
from fairtune.core.files import remove_leftovers, write_sealed
from fairtune.execution.examples import record_examples
from fairtune.execution.executors.local import LocalExecutor, Message, find_devices
from fairtune.execution.job import Job, make_job
from fairtune.ledger.folders import lock, require_writable, study_folder
from fairtune.ledger.index import refresh_index
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import write_study
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.plan import Plan
from fairtune.tasks.card_making import card_of


class Watcher(Protocol):
    """Told what happens; draws it."""

    def begin(self, plan: Plan, waiting: Sequence[Job]) -> None: ...

    def hear(self, kind: str, job: Job, message: Message) -> None: ...

    def end(self) -> None: ...


@dataclass
class Outcome:
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


def conduct(plan: Plan, runs: Path, watcher: Watcher) -> Outcome:
    """Run what is not finished yet.

    Raises:
        LedgerError: the folder cannot be written, belongs to another plan, or another process runs this study.
        Stopped: it was interrupted; what was done is saved.
    """
    require_writable(runs)
    home = study_folder(runs, plan.study.study)
    with lock(home / ".lock", f"study '{plan.study.study}' is being run by another process; see `fairtune status`."):
        jobs = [make_job(plan, run, runs) for run in plan.runs]
        for job in jobs:
            job.run.check_plan(job.plan)
        record_plan(plan, home)
        states = {job.name: run_state(job.run, job.plan["key"], remember=True) for job in jobs}
        outcome = Outcome(
            kept=[name for name, state in states.items() if state.status == FINISHED],
            damaged={name: str(state.problem) for name, state in states.items() if state.status == DAMAGED},
        )
        open_jobs = [job for job in jobs if job.name not in {*outcome.kept, *outcome.damaged}]

        def listen(kind: str, job: Job, message: Message) -> None:
            if kind == "ended" and message["result"]["status"] == "finished":
                outcome.finished.append(job.name)
            elif kind == "ended":
                outcome.failed[job.name] = message["result"]["reason"]
            elif kind == "refused":
                outcome.failed[job.name] = message["reason"]
            watcher.hear(kind, job, message)
            if kind in ("ended", "refused"):
                _require_there(home)

        watcher.begin(plan, open_jobs)
        try:
            if open_jobs:
                executor = LocalExecutor(find_devices(plan.study.execution.devices), home / "logs", listen)
                executor.run(open_jobs)
                outcome.disk_full = executor.disk_full
        finally:
            watcher.end()
            if not outcome.disk_full and home.is_dir():
                refresh_index(runs)
    return outcome


def _require_there(home: Path) -> None:
    """Stop where there is nothing left to record in, rather than train for nobody."""
    if not (home / "study.json").is_file():
        raise LedgerError(
            f"{home}: the study's folder was deleted or moved away while its runs were under way, so the study was stopped. "
            "Bring it back, or run the study again from the start."
        )


def record_plan(plan: Plan, home: Path) -> None:
    """Keep the plan, before anything is run: `study.json` is the newest, `plans/` has each one with its time."""
    remove_leftovers(home)
    write_study(home, plan.as_json())
    if plan.task.kind != TEXT:  # of text, the plan's own counts tell what there is to tell
        _record_card(plan, home / "data.json")
        record_examples(plan, home)


def _record_card(plan: Plan, file: Path) -> None:
    """Keep the data card. It is a help to readers: without it, a study runs all the same and says why there is none."""
    content: dict[str, Any]
    try:
        content = card_of(**plan.study.data()).as_json()
    except Stopped:
        raise
    except Exception as error:
        content = {"problem": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(OSError):
        write_sealed(file, content)
