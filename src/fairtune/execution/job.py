"""A job: all that a worker needs to perform one run, as plain data that crosses a process boundary."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.files import write_sealed
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.models.layouts import registered_layouts
from fairtune.study.plan import Plan, PlannedRun


@dataclass(frozen=True)
class Job:
    """One run to perform.

    Args:
        plan: what the run's plan.json says.
        task: what decides the task's data, as `load_task` takes it.
        model: the fields of a `ModelSource`.
        tokenizer: the fields of a `TokenizerSource`; None is the checkpoint's own.
        prompts: texts that a language model goes on with when it is trained; None takes beginnings of validation texts.
        attention: layouts that the user registered, for the worker to know them too.
        plugins: what the worker loads first, as `Plugin.as_json` has it.
    """

    folder: str
    plan: dict[str, Any]
    task: dict[str, Any]
    model: dict[str, Any]
    checkpoint_every: int | str
    save_model: bool
    attention: dict[str, Any]
    tokenizer: dict[str, Any] | None = None
    prompts: list[str] | None = None
    plugins: list[dict[str, Any]] = field(default_factory=list)

    @property
    def run(self) -> RunFolder:
        return RunFolder(Path(self.folder))

    @property
    def name(self) -> str:
        return f"{self.plan['arm']}/seed-{self.plan['seed']}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def make_job(plan: Plan, run: PlannedRun, runs: Path) -> Job:
    return Job(
        folder=str(run_folder(runs, plan.study.study, run.arm, run.seed).path),
        plan={"plan": plan.hash, "study": plan.study.study, **asdict(run)},
        task=plan.study.data(),
        model=plan.models[run.arm].as_json(),
        checkpoint_every=plan.study.execution.checkpoint_every,
        save_model=plan.study.execution.save_model,
        attention=registered_layouts(),
        tokenizer=plan.tokenizer.as_json() if plan.tokenizer else None,
        prompts=None if plan.study.prompts is None else list(plan.study.prompts),
        plugins=[plugin.as_json() for plugin in plan.plugins],
    )


def failure(job: Job, reason: str, kind: str) -> dict[str, Any]:
    """The result of a run that failed.

    Args:
        kind: run (it cannot go on), input, error (unforeseen), killed, or disk (full).
    """
    return {
        "status": "failed",
        "signature": job.plan["signature"],
        "key": job.plan["key"],
        "reason": reason,
        "kind": kind,
    }


def record_failure(job: Job, result: dict[str, Any], details: str | None = None) -> None:
    """Write a failure into the ledger, as far as the disk still takes it; a study whose folder is gone gets none."""
    folder = job.run
    if not folder.path.parent.parent.is_dir():
        return
    with contextlib.suppress(OSError):
        if not folder.plan.exists():  # it failed before it began, and the folder must say of what it is
            folder.write_plan(job.plan)
        log = EventLog(folder.events)
        try:
            log.write("failed", 0, reason=result["reason"], details=details)
        finally:
            log.close()
    with contextlib.suppress(OSError):
        write_sealed(folder.result, result)
