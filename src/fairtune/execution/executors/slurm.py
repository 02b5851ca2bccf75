"""Slurm as a cluster: a study's blocks are tasks of a job array, asked about with formats of our own."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.core.files import read_sealed, write_sealed
from fairtune.core.numbers import plural
from fairtune.execution.executors.node import UNSEEN
from fairtune.execution.executors.remote import (
    GONE,
    OVER,
    RUNNING,
    WAITING,
    BlockState,
    RemoteExecutor,
    exit_state,
)
from fairtune.execution.executors.specs import JOBS, Block, next_folder, read_spec
from fairtune.ledger.folders import TRIALS
from fairtune.ledger.seals import DAMAGED, FINISHED, run_state
from fairtune.settings.execution import Execution, limit_minutes
from fairtune.study.plan import Plan
from fairtune.study.run_spec import RunSpec

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel")
ANSWER_SECONDS = 60.0
"""How long Slurm may take to answer."""
SAVE_SECONDS = 600.0
"""How long a cancelled job may take to save its states before Slurm ends it."""
WARN_SECONDS = 120
"""Before its time limit, at most, a job is asked to save."""
MOST_BLOCKS = 1000
"""Tasks of an array; Slurm's usual limit is 1001."""
RECORD = "slurm.json"
"""In the study's folder of jobs: which arrays it has queued."""
NO_LOG = 53
"""The signal that Slurm names where a job's log could not be opened on its node."""
PENDING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
REASONS = {
    "Resources": "for free nodes",
    "Priority": "behind jobs of higher priority",
    "BeginTime": "a moment, having been put back",
    "JobArrayTaskLimit": "for others of the study, as max_parallel says",
    "PartitionTimeLimit": "for ever: its time is above the partition's limit",
    "PartitionConfig": "for ever: the partition has no such node",
    "BadConstraints": "for ever: no node is as asked for",
    "ReqNodeNotAvail": "for nodes that are down, drained or reserved",
}
"""What a job waits for; others are shown in Slurm's own words."""
ENDS = {
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not start",
    "TIMEOUT": "its time was up",
    "OUT_OF_MEMORY": "it used more memory than execution.slurm.memory",
    "PREEMPTED": "a job of higher priority took its place",
}


class SlurmError(FairtuneError):
    """Slurm is not there, does not answer, or refuses."""


@dataclass(frozen=True)
class QueuedArray:
    """An array that a study has queued.

    Args:
        submission: the name of its folder.
        runs: the names of each block's runs, by the block's number.
    """

    job: str
    submission: str
    runs: dict[str, list[str]]


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
        if self.state == RUNNING:
            return f"job {self.job} on {self.node}"
        return f"job {self.job} waits {self.reason}"


def make_slurm_executor(execution: Execution, home: Path) -> RemoteExecutor:
    """The executor of a study on Slurm.

    Raises:
        SlurmError: there is no Slurm here.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise SlurmError(
            f"no Slurm here: {', '.join(missing)} not found on the PATH; run this on a login node of the cluster, or without "
            "`--on slurm`."
        )
    return RemoteExecutor(SlurmJobs(execution, home), execution, home)


class SlurmJobs:
    """A study's jobs on Slurm; see `Cluster`."""

    name = "Slurm"

    def __init__(self, execution: Execution, home: Path) -> None:
        self._execution, self._home = execution, home
        self._arrays = read_arrays(home)
        self._tasks: dict[Block, str] = {}
        self._ends: dict[str, BlockState] = {}

    def group(self, jobs: Sequence[RunSpec]) -> list[list[RunSpec]]:
        return group_by_seed(jobs)

    def queue(self, blocks: Sequence[Block]) -> str:
        folder, numbers = blocks[0].folder, ",".join(str(block.number) for block in blocks)
        job = _ask("sbatch", "--parsable", text=make_script(self._home, folder, numbers, self._execution))
        job = job.strip().split(";")[0]
        runs = {str(block.number): [one.name for one in block.jobs] for block in blocks}
        self._arrays.append(QueuedArray(job, folder.name, runs))
        self._tasks |= {block: f"{job}_{block.number}" for block in blocks}
        try:
            write_arrays(self._home, self._arrays)
        except OSError as error:
            _cancel([job])
            raise LedgerError(f"{self._home}: the queued job cannot be recorded ({error.strerror}).") from None
        return f"Slurm: {plural(len(blocks), 'job')} queued as {job}; logs in {folder}."

    def left(self) -> list[Block]:
        there, found = _queue(self._home) if self._arrays else {}, []
        for array in self._arrays:
            for number in array.runs:
                if (task := f"{array.job}_{number}") in there:
                    folder = self._home.resolve() / JOBS / array.submission
                    try:
                        jobs = tuple(read_spec(file)[0] for file in sorted(folder.glob(f"{number}-*.json")))
                    except LedgerError:  # of an earlier version, which its nodes refuse
                        continue
                    found.append(Block(folder, int(number), jobs))
                    self._tasks[found[-1]] = task
        return found

    def states(self, blocks: Collection[Block]) -> Mapping[Block, BlockState]:
        try:
            there = _queue(self._home)
        except SlurmError:  # a controller that is away for a moment; jobs do not mind
            return {block: BlockState(RUNNING) for block in blocks}
        return {
            block: BlockState(there[task].state, there[task].reason) if task in there else self._end(task, block)
            for block in blocks
            for task in [self._tasks[block]]
        }

    def _end(self, task: str, block: Block) -> BlockState:
        """How a task ended; asked once, since Slurm forgets after some minutes."""
        if task not in self._ends:
            try:
                facts = dict(re.findall(r"(\w+)=(\S+)", _ask("scontrol", "--oneliner", "show", "job", task)))
            except SlurmError:
                facts = {}
            state, (code, _, number) = facts.get("JobState", ""), facts.get("ExitCode", "0:0").partition(":")
            if state.startswith("CANCELLED"):
                self._ends[task] = BlockState(
                    OVER, "its job was cancelled; run the same command again to go on with it"
                )
            elif state in ENDS or not facts:
                self._ends[task] = BlockState(GONE, ENDS.get(state, ""))
            else:
                self._ends[task] = exit_state(UNSEEN if number == str(NO_LOG) else int(code), block)
        return self._ends[task]

    def cancel(self, blocks: Collection[Block]) -> None:
        """First what waits; what is under way is asked to save, and given time for that."""
        tasks = [self._tasks[block] for block in blocks]
        _cancel(tasks, "--state=PENDING")
        _cancel(tasks, "--signal=TERM", "--batch")
        deadline = time.monotonic() + SAVE_SECONDS
        try:
            with contextlib.suppress(SlurmError):
                while time.monotonic() < deadline and set(tasks) & _queue(self._home).keys():
                    time.sleep(1.0)
        finally:
            _cancel(tasks)  # also those that came back into the queue meanwhile

    def ways(self) -> str:
        study = f"{self._home.parent.name}/{self._home.name}" if self._home.name == TRIALS else self._home.name
        jobs = shlex.join(dict.fromkeys(task.partition("_")[0] for task in self._tasks.values()))
        return (
            f"`fairtune status {study}` shows them, the same command again follows them, `scancel {jobs}` cancels them."
        )

    def close(self) -> None:
        """Forget arrays of which nothing is in the queue any more."""
        try:
            there = {task.partition("_")[0] for task in _queue(self._home)} if self._arrays else set()
            left = [array for array in self._arrays if array.job in there]
            if left != self._arrays and (self._home / JOBS).is_dir():
                write_arrays(self._home, left)
        except (SlurmError, OSError):
            return


def group_by_seed(jobs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """A seed's arms make a block, which stays on one node, so that their times compare; trials are compared by score alone."""
    blocks: dict[object, list[RunSpec]] = {}
    for job in jobs:
        alone = job.settings.as_json().get("trial")
        blocks.setdefault(job.name if alone else job.seed, []).append(job)
    found = list(blocks.values())
    size = -(-len(found) // MOST_BLOCKS)
    return [[job for block in found[at : at + size] for job in block] for at in range(0, len(found), size)]


def job_name(home: Path) -> str:
    """By which a study's jobs are found in the queue; its trials are in a folder of it."""
    study = f"{home.parent.name}-{home.name}" if home.name == TRIALS else home.name
    return f"fairtune-{re.sub(r'[^A-Za-z0-9_.-]', '-', study)}"[:100]


def make_script(home: Path, submission: Path, numbers: str, execution: Execution, python: str = sys.executable) -> str:
    """The script of an array: one task for each block.

    Args:
        numbers: of the blocks, such as `0-3`.
        python: that has fairtune, under the same path on every node.
    """
    wanted = execution.slurm
    warned = WARN_SECONDS if wanted.time is None else max(10, min(WARN_SECONDS, int(limit_minutes(wanted.time) * 15)))
    options = {
        "job-name": job_name(home),
        "array": numbers + ("" if wanted.max_parallel is None else f"%{wanted.max_parallel}"),
        "output": f"{str(submission).replace('%', '%%')}/%a.log",
        "open-mode": "append",
        "signal": f"B:USR1@{warned}",
        "nodes": "1",
        "ntasks": "1",
        "partition": wanted.partition,
        "time": wanted.time,
        "gres": wanted.gres,
        "cpus-per-task": wanted.cpus or (execution.threads if execution.threads > 1 else None),
        "mem": wanted.memory,
    }
    worker = shlex.join([python, "-m", "fairtune", "worker"])
    lines = [
        "#!/bin/sh",
        "#SBATCH --requeue",
        *(_option(name, str(value)) for name, value in options.items() if value is not None),
        *(f"#SBATCH {option}" for option in wanted.extra),
        "",
        f'exec {worker} {shlex.quote(str(submission))}/"$SLURM_ARRAY_TASK_ID"-*.json',
    ]
    return "\n".join(lines) + "\n"


def planned_script(plan: Plan, runs: Path, arms: Collection[str] | None = None) -> str | None:
    """The script that a study's unfinished runs would be queued with; None where all are finished.

    Args:
        arms: the runs of these alone.
    """
    home = runs / plan.study.study
    jobs = [run.at(runs) for run in plan.runs if arms is None or run.arm in arms]
    left = [job for job in jobs if run_state(job.run, job.key).status not in (FINISHED, DAMAGED)]
    numbers = f"0-{len(group_by_seed(left)) - 1}"
    return make_script(home, next_folder(home), numbers, plan.study.execution) if left else None


def runs_in_queue(home: Path) -> dict[str, RunInQueue]:
    """By name, the runs of a study whose jobs are in Slurm's queue; none where Slurm does not answer."""
    try:
        there = _queue(home)
    except SlurmError:
        return {}
    tasks = [(f"{array.job}_{number}", runs) for array in read_arrays(home) for number, runs in array.runs.items()]
    return {run: there[task] for task, runs in tasks if task in there for run in runs}


def read_arrays(home: Path) -> list[QueuedArray]:
    """The arrays that a study has queued, the oldest first; none where there is no record, or none that can be read."""
    try:
        return [QueuedArray(**one) for one in read_sealed(home / JOBS / RECORD)["arrays"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def write_arrays(home: Path, arrays: Collection[QueuedArray]) -> None:
    write_sealed(home / JOBS / RECORD, {"arrays": [vars(array) for array in arrays]})


def _queue(home: Path) -> dict[str, RunInQueue]:
    """The study's tasks that are in Slurm's queue, as `12_3`.

    Raises:
        SlurmError: Slurm does not answer.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        user = str(os.getuid())
    order = ("squeue", "--noheader", "--array", "--user", user, "--name", job_name(home), "-o", "%F|%K|%T|%N|%R")
    found = {}
    for line in _ask(*order).splitlines():
        job, task, state, node, reason = (part.strip() for part in line.split("|", 4))
        waits = state in PENDING
        words = REASONS.get(reason.strip("()").split(",")[0], reason) if waits else ""
        found[f"{job}_{task}"] = RunInQueue(WAITING if waits else RUNNING, words, node, f"{job}_{task}")
    return found


def _option(name: str, value: str) -> str:
    plain = re.fullmatch(r"[A-Za-z0-9_.,:@%/+=-]+", value)
    return f"#SBATCH --{name}={value}" if plain else f'#SBATCH --{name}="{value}"'


def _cancel(jobs: Sequence[str], *options: str) -> None:
    """Ask Slurm to end jobs; those that are gone are no error."""
    if jobs:
        order = ["scancel", "--quiet", *options, *jobs]
        subprocess.run(order, capture_output=True, check=False, timeout=ANSWER_SECONDS)


def _ask(*order: str, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            order, input=text, capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS, errors="replace"
        )
    except FileNotFoundError:
        raise SlurmError(f"{order[0]} was not found on the PATH; run this on a login node of the cluster.") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"Slurm does not answer ({order[0]}); try again later.") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        words = "; ".join(line.removeprefix(f"{order[0]}: ").removeprefix("error: ") for line in said[-2:])
        raise SlurmError(f"Slurm refuses: {words or f'{order[0]} ended with code {done.returncode}'}.")
    return done.stdout
