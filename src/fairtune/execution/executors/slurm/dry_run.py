"""What `fairtune run --dry-run` prints: what would be queued, and nothing is."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fairtune.execution.executors.slurm.executor import group_by_seed, study_of
from fairtune.execution.executors.slurm.script import make_script
from fairtune.execution.job import make_job
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.ledger.studies import study_folder
from fairtune.study.plan import Plan


def planned_script(plan: Plan, runs: Path, arms: Collection[str] | None = None) -> str | None:
    """The script of the array that a study's unfinished runs would be queued with; None where all are finished.

    Args:
        arms: the runs of these alone.
    """
    home = study_folder(runs, plan.study.study)
    jobs = [make_job(plan, run, runs) for run in plan.runs if arms is None or run.arm in arms]
    left = [job for job in jobs if run_state(job.run, job.plan["key"]).status not in (FINISHED, DAMAGED)]
    if not left:
        return None
    taken = [int(path.name) for path in (home / "jobs").glob("*") if path.name.isdecimal()]
    submission = home.resolve() / "jobs" / str(1 + max(taken, default=0))
    return make_script(study_of(home), submission, len(group_by_seed(left)), plan.study.execution)
