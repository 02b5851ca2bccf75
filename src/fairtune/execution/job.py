"""A job: all that a worker needs for one run, as plain data that crosses a process boundary; and how a failure is recorded."""

from __future__ import annotations

import contextlib
import errno
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.errors import FairtuneError, RunFailure
from fairtune.core.files import write_sealed
from fairtune.core.leases import require_held
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.studies import run_folder
from fairtune.models.attention_layouts import registered_layouts
from fairtune.study.plan import Plan, PlannedRun

GONE = "its folder was deleted or moved away while it was training, so nothing of it is recorded"
DISK = "disk"
"""The cause of a failure after which no other run can be recorded either."""


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
        plan={"plan": plan.hash, "study": plan.study.study, **run.as_json()},
        task=plan.study.data(),
        model=plan.models[run.arm].as_json(),
        checkpoint_every=plan.study.execution.checkpoint_every,
        save_model=plan.study.execution.save_model,
        attention=registered_layouts(),
        tokenizer=plan.tokenizer.as_json() if plan.tokenizer else None,
        prompts=None if plan.study.prompts is None else list(plan.study.prompts),
        plugins=[plugin.as_json() for plugin in plan.plugins],
    )


def failed_result(job: Job, reason: str, cause: str) -> dict[str, Any]:
    """The result of a run that failed.

    Args:
        cause: run (it cannot go on), input, error (unforeseen), killed, or disk (full).
    """
    return {
        "status": "failed",
        "signature": job.plan["signature"],
        "key": job.plan["key"],
        "reason": reason,
        "kind": cause,
    }


def record_failure(job: Job, result: dict[str, Any], details: str | None = None) -> None:
    """Write a failure into the ledger, as far as the disk still takes it; a study whose folder is gone gets none.

    Raises:
        LeaseLost: another process has taken the run over, so it has not failed.
    """
    folder = job.run
    require_held(folder.path)
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


def describe_failure(job: Job, error: Exception, begun: bool = True) -> tuple[dict[str, Any], str | None]:
    """The result of a run that ended in an exception, and where that was raised, unless it says all by itself.

    Args:
        begun: whether the run's folder was made.
    """
    gone = begun and not job.run.plan.exists()
    result = failed_result(job, GONE if gone else failure_reason(error), cause="run" if gone else failure_cause(error))
    foreseen = isinstance(error, RunFailure | FairtuneError)
    return result, None if foreseen else "".join(traceback.format_exception(error, limit=-6))


def failure_reason(error: BaseException) -> str:
    """Why a run failed, in a sentence."""
    import torch  # only where runs are performed: the process that starts workers does without it

    memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "out of memory" in str(error)
    if memory and not isinstance(error, RunFailure):
        return (
            "out of memory; steps and evaluations are made smaller by themselves, so it is the model with its optimizer that does "
            "not fit: use a smaller model, a method that trains fewer weights, fewer runs at once or a device with more memory"
        )
    if _is_full_disk(error):
        return "the disk is full; free some space and run the same command again, what is recorded is kept"
    if isinstance(error, RunFailure | FairtuneError):
        return str(error)
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}"


def _is_full_disk(error: BaseException) -> bool:
    """Also when a library says so in words of its own, as safetensors does."""
    known = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return known or "No space left on device" in str(error)


def failure_cause(error: BaseException) -> str:
    """Why a run failed, in one of the words of `failed_result`."""
    if _is_full_disk(error):
        return DISK
    return "run" if isinstance(error, RunFailure) else "input" if isinstance(error, FairtuneError) else "error"
