"""Slurm as a cluster: what is checked before, how blocks are queued and cancelled, and where they are."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically
from fairtune.core.stages import stage
from fairtune.execution.executors.remote.cluster import CANCELLED, GONE, RUNNING, WAITING, BlockKey, BlockState
from fairtune.execution.executors.remote.executor import RemoteExecutor
from fairtune.execution.executors.remote.job_files import Submission
from fairtune.execution.executors.slurm.commands import (
    QueuedTask,
    SlurmError,
    all_nodes,
    cancel,
    ended_job,
    queue_of,
    require_slurm,
    submit,
)
from fairtune.execution.executors.slurm.partitions import require_resources
from fairtune.execution.executors.slurm.probe import NodeProbe, await_probe, send_probe
from fairtune.execution.executors.slurm.queue_states import (
    QueuedArray,
    nodes_to_blame,
    read_arrays,
    reason_of,
    state_of,
    write_arrays,
)
from fairtune.execution.executors.slurm.script import array_option, job_name, make_script
from fairtune.execution.job import Job
from fairtune.ledger.studies import TRIALS
from fairtune.settings.execution import Execution

MOST_BLOCKS = 1000
"""Tasks of an array; Slurm's usual limit is 1001."""
SAVE_SECONDS = 600.0
"""How long a cancelled job may take to save its states before Slurm ends it."""
ENDS = {
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not start",
    "TIMEOUT": "its time was up",
    "OUT_OF_MEMORY": "it used more memory than execution.slurm.memory",
    "PREEMPTED": "a job of higher priority took its place",
    "FAILED": "it ended with an error; its log says why",
    "COMPLETED": "it ended without an answer",
}
NEVER = "DependencyNeverSatisfied"
_probed: set[tuple[str, str | None, str]] = set()
"""What this process has found in order, so that rounds of trials ask once."""


def make_slurm_executor(execution: Execution, home: Path) -> RemoteExecutor:
    """The executor of a study on Slurm.

    Raises:
        SlurmError: there is no Slurm here.
    """
    require_slurm()
    return RemoteExecutor(SlurmJobs(execution, home), execution, home)


def group_by_seed(jobs: Sequence[Job]) -> list[list[Job]]:
    """A seed's arms make a block, which stays on one node, so that their times compare; trials are compared by score alone."""
    blocks: dict[object, list[Job]] = {}
    for job in jobs:
        alone = job.plan["settings"].get("trial")
        blocks.setdefault(job.name if alone else job.plan["seed"], []).append(job)
    found = list(blocks.values())
    size = -(-len(found) // MOST_BLOCKS)
    return [[job for block in found[at : at + size] for job in block] for at in range(0, len(found), size)]


def study_of(home: Path) -> str:
    """What the study of a folder is called in the queue; its trials are in a folder of it."""
    return f"{home.parent.name}-{home.name}" if home.name == TRIALS else home.name


class SlurmJobs:
    """A study's jobs on Slurm; see `Cluster`."""

    name = "Slurm"

    def __init__(self, execution: Execution, home: Path) -> None:
        self._execution, self._home, self._study = execution, home, study_of(home)
        self._shown = f"{home.parent.name}/{home.name}" if home.name == TRIALS else home.name
        self._arrays = read_arrays(home)
        self._probe: NodeProbe | None = None
        self._last: list[QueuedTask] = []
        self._ends: dict[str, BlockState] = {}
        self._queued_at = dict[str, float]()

    def check(self, jobs: Sequence[Job]) -> None:
        del jobs
        require_slurm()
        require_resources(self._execution, all_nodes())
        known = str(self._home.parent.resolve()), self._execution.slurm.partition, sys.executable
        if known in _probed:
            return
        with stage("a first job on Slurm looks whether a node sees the runs folder and has the same fairtune"):
            probe = send_probe(self._study, self._home, self._execution)
            if await_probe(probe):
                _probed.add(known)
            else:
                self._probe = probe

    def group(self, jobs: Sequence[Job]) -> list[list[Job]]:
        return group_by_seed(jobs)

    def queue(self, submission: Submission, blocks: Sequence[int]) -> str:
        script = make_script(self._study, submission.folder.resolve(), len(submission.blocks), self._execution)
        options = [] if len(blocks) == len(submission.blocks) else [array_option(blocks, self._execution)]
        if self._probe is not None:
            options += [f"--dependency=afterok:{self._probe.job}", "--kill-on-invalid-dep=yes"]
        write_atomically(submission.folder / "slurm.sh", script.encode())
        job = submit(script, options)
        probe = None if self._probe is None else (self._probe.job, str(self._probe.folder))
        self._arrays.append(QueuedArray(job, submission.folder.name, tuple(blocks), probe))
        self._queued_at[job] = time.monotonic()
        try:
            write_arrays(self._home, self._arrays)
        except OSError as error:
            cancel([job])
            raise LedgerError(f"{self._home}: the queued job cannot be recorded ({error.strerror}).") from None
        after = "" if probe is None else f", once job {probe[0]} has looked at a node: the cluster is busy"
        count = f"{len(blocks)} job{'s' * (len(blocks) > 1)}"
        return f"Slurm: {count} queued as {job}{after}; logs in {submission.folder}."

    def queued(self) -> list[Path]:
        return [self._home / "jobs" / name for name in dict.fromkeys(array.submission for array in self._arrays)]

    def states(self, blocks: Collection[BlockKey]) -> Mapping[BlockKey, BlockState]:
        try:
            self._last = queue_of(job_name(self._study))
            unusable = nodes_to_blame(self._last)
        except SlurmError:  # a controller that is away for a moment; jobs do not mind
            return {key: BlockState(RUNNING) for key in blocks}
        tasks = {(task.job, task.task): task for task in self._last}
        newest = {(array.submission, block): array for array in self._arrays for block in array.blocks}
        found = {}
        for key in blocks:
            if (array := newest.get(key)) is None:
                continue
            task, job = tasks.get((array.job, key[1])), f"{array.job}_{key[1]}"
            if task is not None:
                state = WAITING if state_of(task) == "waiting" else RUNNING
                found[key] = BlockState(state, reason_of(task, unusable), task.node, job)
            else:
                found[key] = self._end(array, job)
        return found

    def _end(self, array: QueuedArray, job: str) -> BlockState:
        """How a task ended; asked once, since Slurm forgets."""
        if job not in self._ends:
            ended = ended_job(job)
            if ended is not None and ended.state.startswith("CANCELLED"):
                problem = None
                if array.probe is not None and NEVER in ended.reason:
                    problem = NodeProbe(array.probe[0], Path(array.probe[1]), self._study).problem()
                self._ends[job] = BlockState(CANCELLED, problem or "", job=job)
            else:
                self._ends[job] = BlockState(GONE, "" if ended is None else ENDS.get(ended.state, ended.state), job=job)
        return self._ends[job]

    def cancel(self, blocks: Collection[BlockKey]) -> None:
        """First what waits; what is under way is told to save, and is given time for that."""
        jobs = [
            f"{array.job}_{block}"
            for array in self._arrays
            for block in array.blocks
            if (array.submission, block) in blocks
        ]
        cancel(jobs, "--state=PENDING")
        cancel(jobs, "--signal=TERM", "--batch")
        deadline, wanted = time.monotonic() + SAVE_SECONDS, set(jobs)
        try:
            while time.monotonic() < deadline and wanted & set(self._there()):
                time.sleep(1.0)
        finally:
            cancel(jobs)  # also those that came back into the queue meanwhile

    def _there(self) -> Iterable[str]:
        try:
            return [f"{task.job}_{task.task}" for task in queue_of(job_name(self._study))]
        except SlurmError:
            return []

    def ways(self) -> str:
        jobs = shlex.join(dict.fromkeys(array.job for array in self._arrays if self._is_there(array)))
        return f"`fairtune status {self._shown}` shows them, the same command again follows them, `scancel {jobs}` cancels them."

    def _is_there(self, array: QueuedArray) -> bool:
        return array.job in self._queued_at or any(task.job == array.job for task in self._last)

    def close(self) -> None:
        """Forget arrays of which nothing is in the queue any more."""
        if not self._arrays:
            return
        try:
            there = {task.job for task in queue_of(job_name(self._study))}
            left = [array for array in self._arrays if array.job in there]
            if left != self._arrays and (self._home / "jobs").is_dir():
                write_arrays(self._home, left)
        except (SlurmError, OSError):
            return
