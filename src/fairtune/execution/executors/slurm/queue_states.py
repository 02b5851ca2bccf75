"""Where a study's jobs are in Slurm's queue, in words; read by the executor and by `fairtune status`.

`jobs/slurm.json` says which arrays a study has queued, and of which submissions' blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.files import read_json, read_sealed, write_sealed
from fairtune.execution.executors.slurm.commands import QueuedTask, SlurmError, queue_of, unusable_nodes
from fairtune.execution.executors.slurm.script import job_name

RECORD = "slurm.json"
PENDING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
UNAVAILABLE = ("ReqNodeNotAvail", "Nodes required for job are DOWN", "NodeDown", "PartitionDown", "PartitionInactive")
REASONS = {
    "Resources": "for free nodes",
    "Priority": "behind jobs of higher priority",
    "Dependency": "for the first job to look at a node",
    "BeginTime": "a moment, having been put back",
    "JobArrayTaskLimit": "for others of the study, as max_parallel says",
    "JobHeldUser": "held by its owner",
    "JobHeldAdmin": "held by an administrator",
    "PartitionTimeLimit": "for ever: its time is above the partition's limit",
    "PartitionConfig": "for ever: the partition has no such node",
    "BadConstraints": "for ever: no node is as asked for",
    "ReqNodeNotAvail": "for nodes that are down, drained or reserved",
    "None": "to be looked at",
    "": "to be looked at",
}
"""What a job waits for; others are shown in Slurm's own words."""


@dataclass(frozen=True)
class QueuedArray:
    """An array that was queued.

    Args:
        submission: the name of its folder.
        probe: the job that it waits for, and that one's folder.
    """

    job: str
    submission: str
    blocks: tuple[int, ...]
    probe: tuple[str, str] | None = None


def read_arrays(home: Path) -> list[QueuedArray]:
    """The arrays that a study has queued, the oldest first; none where there is no record, or none that can be read."""
    try:
        found = read_sealed(home / "jobs" / RECORD)["arrays"]
        return [
            QueuedArray(
                str(one["job"]),
                str(one["submission"]),
                tuple(int(block) for block in one["blocks"]),
                None if one.get("probe") is None else (str(one["probe"][0]), str(one["probe"][1])),
            )
            for one in found
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return []


def write_arrays(home: Path, arrays: Collection[QueuedArray]) -> None:
    write_sealed(home / "jobs" / RECORD, {"arrays": [vars(one) | {"blocks": list(one.blocks)} for one in arrays]})


@dataclass(frozen=True)
class RunInQueue:
    """A run whose job is in the queue.

    Args:
        state: waiting or running.
        reason: what it waits for, in words.
    """

    state: str
    reason: str
    node: str
    job: str

    @property
    def words(self) -> str:
        if self.state == "running":
            return f"job {self.job} on {self.node}"
        return f"job {self.job} waits {self.reason}"


def runs_in_queue(home: Path, study: str) -> dict[str, RunInQueue]:
    """By name, the runs of a study whose jobs are in Slurm's queue; none where there is no record, or Slurm does not answer."""
    arrays = read_arrays(home)
    if not arrays:
        return {}
    try:
        tasks = {(task.job, task.task): task for task in queue_of(job_name(study))}
        unusable = nodes_to_blame(tasks.values())
    except SlurmError:
        return {}
    found: dict[str, RunInQueue] = {}
    for array in arrays:
        about: Mapping[str, Any] = read_json(home / "jobs" / array.submission / "submission.json") or {}
        for block in array.blocks:
            task = tasks.get((array.job, block))
            if task is None:
                continue
            state = RunInQueue(state_of(task), reason_of(task, unusable), task.node, f"{array.job}_{block}")
            with contextlib.suppress(KeyError, IndexError, TypeError):
                found |= {str(about["runs"][number]): state for number in about["blocks"][block]}
    return found


def state_of(task: QueuedTask) -> str:
    return "waiting" if task.state in PENDING else "running"


def nodes_to_blame(tasks: Collection[QueuedTask]) -> str:
    """Nodes that somebody took out, with the reason, where a task waits for such."""
    if not any(word in task.reason for task in tasks if state_of(task) == "waiting" for word in UNAVAILABLE):
        return ""
    return "; ".join(f"{node}: {reason}" for node, reason in unusable_nodes().items())


def reason_of(task: QueuedTask, unusable: str = "") -> str:
    """What a task waits for, in words; empty of one that runs."""
    if state_of(task) != "waiting":
        return ""
    slurms = task.reason.split(",")[0]
    if any(word in task.reason for word in UNAVAILABLE):
        return REASONS["ReqNodeNotAvail"] + (f" ({unusable})" if unusable else "")
    if slurms.startswith(("QOS", "Assoc", "MaxJobs")):
        return f"since a limit of the account is reached ({slurms})"
    return REASONS.get(slurms, f"({task.reason})")
