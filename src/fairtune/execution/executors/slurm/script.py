"""The script that Slurm is given: a pure function of the study's settings, so that `--dry-run` can print it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from fairtune.settings.execution import Execution, limit_minutes

SAVE_SECONDS = 120
"""Before the time limit, at most, a job is told to save; Slurm may tell it up to a minute earlier."""
LONGEST_NAME = 100


def job_name(study: str) -> str:
    """By which the study's jobs are found in the queue."""
    return f"fairtune-{re.sub(r'[^A-Za-z0-9_.-]', '-', study)}"[:LONGEST_NAME]


def make_script(study: str, submission: Path, blocks: int, execution: Execution, python: str = sys.executable) -> str:
    """The script of a submission's array: one task for each block.

    Args:
        submission: the folder of its job files.
        python: that has fairtune, under the same path on every node.
    """
    most = execution.slurm.max_parallel
    parallel = "" if most is None else f"%{most}"
    lines = [
        "#!/bin/sh",
        _option("job-name", job_name(study)),
        _option("array", f"0-{blocks - 1}{parallel}"),
        _option("output", f"{str(submission).replace('%', '%%')}/block-%a.log"),
        _option("open-mode", "append"),
        "#SBATCH --requeue",
        _option("signal", f"B:USR1@{_save_seconds(execution)}"),
        *_resources(execution),
        "",
        f"exec {shlex.join([python, '-m', 'fairtune.execution.executors.slurm.task', str(submission)])}",
    ]
    return "\n".join(lines) + "\n"


def make_probe(study: str, folder: Path, execution: Execution, python: str = sys.executable) -> str:
    """The script of a job that looks whether a node sees the runs folder and has the same fairtune; its exit code says what not."""
    lines = [
        "#!/bin/sh",
        _option("job-name", f"{job_name(study)}-probe"),
        _option("output", "/dev/null"),
        "#SBATCH --no-requeue",
        *_resources(execution, "1"),
        "",
        f"test -f {shlex.quote(str(folder / 'token'))} || exit {UNSEEN}",
        f"test -x {shlex.quote(python)} || exit {NO_PYTHON}",
        f"exec {shlex.join([python, '-m', 'fairtune.execution.executors.slurm.probe', str(folder)])}",
    ]
    return "\n".join(lines) + "\n"


UNSEEN, NO_PYTHON = 41, 42
"""Exit codes of a probe: no such folder on the node; no such Python."""


def _resources(execution: Execution, limit: str | None = None) -> list[str]:
    wanted = execution.slurm
    options = {
        "nodes": "1",
        "ntasks": "1",
        "partition": wanted.partition,
        "time": limit or wanted.time,
        "gres": wanted.gres,
        "cpus-per-task": cores_of(execution),
        "mem": wanted.memory,
    }
    return [
        *(_option(name, str(value)) for name, value in options.items() if value is not None),
        *(f"#SBATCH {option}" for option in wanted.extra),
    ]


def cores_of(execution: Execution) -> int | None:
    """Cores of a job: as the user says, or what its processes and threads take; None leaves it to the cluster."""
    needed = execution.threads * (execution.devices_per_run if execution.slurm.gres is None else 1)
    return execution.slurm.cpus or (needed if needed > 1 else None)


def _save_seconds(execution: Execution) -> int:
    limit = execution.slurm.time
    return SAVE_SECONDS if limit is None else max(10, min(SAVE_SECONDS, int(limit_minutes(limit) * 60 / 4)))


def _option(name: str, value: str) -> str:
    plain = re.fullmatch(r"[A-Za-z0-9_.,:@%/+=-]+", value)
    return f"#SBATCH --{name}={value}" if plain else f'#SBATCH --{name}="{value}"'


def array_option(blocks: Sequence[int], execution: Execution) -> str:
    """The option for some of the blocks alone, which takes the place of the script's own."""
    most = execution.slurm.max_parallel
    return f"--array={','.join(map(str, blocks))}{'' if most is None else f'%{most}'}"
