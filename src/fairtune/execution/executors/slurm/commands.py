"""Slurm's own programs, asked with formats of our own: not every installation can answer in JSON."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.core.errors import FairtuneError

PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
SECONDS = 60.0
"""How long Slurm may take to answer."""


class SlurmError(FairtuneError):
    """Slurm is not there, does not answer, or refuses."""


@dataclass(frozen=True)
class QueuedTask:
    """A task of an array as `squeue` has it; of a job that is none, the task is None.

    Args:
        state: Slurm's word, such as PENDING.
        reason: why it waits, in Slurm's words; a node's name where it runs.
    """

    job: str
    task: int | None
    state: str
    reason: str
    node: str


@dataclass(frozen=True)
class EndedJob:
    """What Slurm still knows of a job that has left the queue."""

    state: str
    reason: str
    exit_code: int


@dataclass(frozen=True)
class NodeFacts:
    """A node in a partition, as `sinfo` has it."""

    partition: str
    is_default: bool
    name: str
    cores: int
    memory: int
    gres: str
    limit: str
    state: str


def require_slurm() -> None:
    """Refuse to go on without Slurm's programs.

    Raises:
        SlurmError: some are missing.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise SlurmError(
            f"no Slurm here: {', '.join(missing)} not found on the PATH; run this on a login node of the cluster, or without "
            "`--on slurm`."
        )


def submit(script: str, options: Sequence[str] = ()) -> str:
    """Queue a script; gives the job's number.

    Raises:
        SlurmError: Slurm refuses it, in its words.
    """
    return _ask("sbatch", "--parsable", *options, text=script).strip().split(";")[0]


def queue_of(name: str) -> list[QueuedTask]:
    """This user's jobs of a name that are in the queue, one entry for each task of an array.

    Raises:
        SlurmError: Slurm does not answer.
    """
    form = "%F|%K|%T|%N|%R"
    found = []
    for line in _ask("squeue", "--noheader", "--array", "--user", _user(), "--name", name, "-o", form).splitlines():
        job, task, state, node, reason = (part.strip() for part in line.split("|", 4))
        number = int(task) if task.isdecimal() else None
        found.append(QueuedTask(job, number, state, reason.strip("()"), node))
    return found


def ended_job(job: str) -> EndedJob | None:
    """How a job, or a task as `12_3`, ended; None where Slurm has forgotten it, which it does after some minutes."""
    try:
        text = _ask("scontrol", "--oneliner", "show", "job", job)
    except SlurmError:
        return None
    line = text.strip().splitlines()[-1] if text.strip() else ""
    facts = dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
    code = facts.get("ExitCode", "").split(":")[0]
    return EndedJob(facts.get("JobState", ""), facts.get("Reason", ""), int(code) if code.isdecimal() else 0)


def all_nodes() -> list[NodeFacts]:
    """Every node of every partition.

    Raises:
        SlurmError: Slurm does not answer.
    """
    found = []
    for line in _ask("sinfo", "--noheader", "--Node", "-o", "%P|%N|%c|%m|%G|%l|%t").splitlines():
        partition, name, cores, memory, gres, limit, state = (part.strip() for part in line.split("|"))
        default, offered = partition.endswith("*"), "" if "null" in gres else gres
        found.append(
            NodeFacts(partition.rstrip("*"), default, name, _whole(cores), _whole(memory), offered, limit, state)
        )
    return found


def _whole(text: str) -> int:
    """A number that may end in "+", where nodes differ."""
    return int(text.rstrip("+")) if text.rstrip("+").isdecimal() else 0


def unusable_nodes() -> dict[str, str]:
    """Nodes that are down or drained, with the reason that somebody gave."""
    lines = _ask("sinfo", "--noheader", "--list-reasons", "-o", "%N|%E").splitlines()
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("|") for line in lines)}


def cancel(jobs: Sequence[str], *options: str) -> None:
    """Ask Slurm to end jobs; those that are gone are no error."""
    if jobs:
        subprocess.run(["scancel", "--quiet", *options, *jobs], capture_output=True, check=False, timeout=SECONDS)


def control(*words: str) -> bool:
    """Whether `scontrol` did as asked."""
    done = subprocess.run(["scontrol", *words], capture_output=True, check=False, timeout=SECONDS)
    return done.returncode == 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        return str(os.getuid())


def _ask(*order: str, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            order, input=text, capture_output=True, text=True, check=False, timeout=SECONDS, errors="replace"
        )
    except FileNotFoundError:
        raise SlurmError(f"{order[0]} was not found on the PATH; run this on a login node of the cluster.") from None
    except subprocess.TimeoutExpired:
        raise SlurmError(
            f"Slurm does not answer ({order[0]} took more than {SECONDS:.0f} s); try again later."
        ) from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        words = "; ".join(line.removeprefix(f"{order[0]}: ").removeprefix("error: ") for line in said[-2:])
        raise SlurmError(f"Slurm refuses: {words or f'{order[0]} ended with code {done.returncode}'}.")
    return done.stdout
