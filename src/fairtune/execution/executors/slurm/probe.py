"""The first job on a cluster: does a node see the runs folder and have the same fairtune? Asked before anything else is queued.

The job is `python -m fairtune.execution.executors.slurm.probe FOLDER`; it reads a token there and answers beside it.
"""

from __future__ import annotations

import contextlib
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_json, write_atomically, write_json
from fairtune.core.version import __version__
from fairtune.execution.executors.slurm.commands import SlurmError, cancel, ended_job, queue_of, submit
from fairtune.execution.executors.slurm.script import NO_PYTHON, UNSEEN, job_name, make_probe
from fairtune.settings.execution import Execution

WAIT_SECONDS = 30.0
"""How long to wait for a probe to begin; where the cluster is busy, the jobs wait for it in the queue instead."""
RUN_SECONDS = 120.0
"""How long one may take that has begun: a first import from a shared disk is slow."""
SHOW_SECONDS = 10.0
"""How long its answer may take to show on a shared disk."""
PENDING = "PENDING"


@dataclass(frozen=True)
class NodeProbe:
    """A job that looks around on a node."""

    job: str
    folder: Path
    study: str

    def problem(self) -> str | None:
        """What is wrong, by how it ended, in a sentence; None where nothing is."""
        ended = ended_job(self.job)
        code = 0 if ended is None else ended.exit_code
        if code == UNSEEN:
            return (
                f"the runs folder {self.folder.parents[2]} is not shared: the node that Slurm chose does not see it; choose a "
                "folder on a disk that all nodes share, with --runs."
            )
        if code == NO_PYTHON:
            return (
                f"the node that Slurm chose has no {sys.executable}; install fairtune in an environment on a disk that all "
                "nodes share."
            )
        deadline = time.monotonic() + SHOW_SECONDS
        while (answer := read_json(self.folder / "answer.json")) is None and time.monotonic() < deadline and not code:
            time.sleep(0.2)
        if answer is None:
            how = "" if ended is None else f" ({ended.state}, exit code {code})"
            return (
                f"a first job on Slurm, {self.job}, ended without an answer{how}: fairtune cannot be imported there, or the "
                f"runs folder {self.folder.parents[2]} cannot be written; use an environment and a folder that all nodes share."
            )
        if answer.get("fairtune") != __version__:
            return (
                f"the nodes have fairtune {answer.get('fairtune')}, this machine has {__version__}; install the same version on "
                "both, or use one environment on a shared disk."
            )
        return None

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def state(self) -> str | None:
        """Slurm's word for it; None once it has left the queue."""
        found = [task.state for task in queue_of(f"{job_name(self.study)}-probe") if task.job == self.job]
        return found[0] if found else None


def send_probe(study: str, home: Path, execution: Execution) -> NodeProbe:
    """Queue a probe.

    Raises:
        SlurmError: Slurm refuses it, as it would refuse the jobs.
    """
    folder = home.resolve() / "jobs" / f"probe-{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True)
        write_atomically(folder / "token", b"fairtune\n")
    except OSError as error:
        raise LedgerError(f"{folder}: cannot be written ({error.strerror}); mend that or use another --runs.") from None
    try:
        return NodeProbe(submit(make_probe(study, folder, execution)), folder, study)
    except SlurmError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def await_probe(probe: NodeProbe, clock: Callable[[], float] = time.monotonic) -> bool:
    """Wait for a probe's end; False where it waits for its turn still.

    Raises:
        SlurmError: it says that runs cannot work there.
    """
    began, state = clock(), PENDING
    try:
        while True:
            now = probe.state()
            if now is None:
                break
            began, state = (clock(), now) if state == PENDING != now else (began, now)
            if clock() - began > (WAIT_SECONDS if state == PENDING else RUN_SECONDS):
                if state == PENDING:
                    return False
                cancel([probe.job])
                raise SlurmError(f"a first job on Slurm, {probe.job}, has not ended in {RUN_SECONDS:.0f} s; look why.")
            time.sleep(1.0)
        problem = probe.problem()
    except BaseException:
        with contextlib.suppress(OSError):
            cancel([probe.job])
        probe.clear()
        raise
    probe.clear()
    if problem is not None:
        raise SlurmError(problem)
    return True


def main() -> int:
    """On the node."""
    folder = Path(sys.argv[1])
    if not (folder / "token").is_file():
        return UNSEEN
    write_json(folder / "answer.json", {"fairtune": __version__, "python": platform.python_version()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
