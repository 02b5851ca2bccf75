"""A run's data: the task as it was planned, read once for all runs of a process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fairtune.core.errors import RunFailure
from fairtune.execution.job import Job
from fairtune.settings.sections import Train
from fairtune.tasks import Task, load_task
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import SPLITS, Split


@lru_cache(maxsize=2)
def load_task_once(spec: str) -> Task:
    return load_task(**json.loads(spec))


def planned_task(job: Job) -> Task:
    """The task that a run classifies.

    Raises:
        RunFailure: its data is not what was planned.
    """
    task = load_task_once(json.dumps(job.task))
    require_same(task.fingerprint, job.plan["settings"]["task"])
    return task


def require_same(fingerprint: str, planned: Mapping[str, Any]) -> None:
    if fingerprint != planned["fingerprint"]:
        raise RunFailure("the task's data changed since the study was planned; run `fairtune run` again to plan anew")


def used_splits(task: Task, train: Train, sample: int | None = None) -> dict[str, Split]:
    """The examples of each split that a run uses, as text; the same, in the same order, as `encode_task` has as tokens.

    Args:
        sample: the seed that draws the training examples, where each seed has its own.
    """
    return {name: fixed_sample(task.splits[name], train.sizes[name], sample) for name in SPLITS}


def sample_of(job: Job) -> int | None:
    """The seed that draws a run's training examples, where each seed has its own."""
    found: int | None = job.plan["settings"].get("sample")
    return found
