"""One run to perform, and the folder that it is recorded in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.execution import failures
from fairtune.execution.failures import DISK, failure_reason
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.studies import run_folder
from fairtune.study.plan import Plan
from fairtune.study.run_spec import RunSpec

__all__ = ["DISK", "Job", "failed_result", "failure_reason", "make_job", "record_failure"]


@dataclass(frozen=True)
class Job:
    folder: str
    spec: RunSpec

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", RunSpec.model_validate(self.spec))

    @property
    def run(self) -> RunFolder:
        return RunFolder(Path(self.folder))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def plan(self) -> dict[str, Any]:
        return self.spec.as_json()

    def as_json(self) -> dict[str, Any]:
        return {"folder": self.folder, "spec": self.spec.as_json()}


def make_job(plan: Plan, run: RunSpec, runs: Path) -> Job:
    return Job(str(run_folder(runs, plan.study.study, run.arm, run.seed).path), run)


def failed_result(job: Job, reason: str, cause: str) -> dict[str, Any]:
    return {
        "status": "failed",
        "signature": job.spec.signature,
        "key": job.spec.key,
        "reason": reason,
        "kind": cause,
    }


def record_failure(job: Job, result: dict[str, Any]) -> None:
    failures.record_failure(job.spec, job.run, result["reason"], result["kind"])
