"""`fairtune worker SPEC...`: what clusters start on a node. It performs runs from files, with the local executor.

So a run on a node has the same workers, threads and guards, and the same bits, as on the user's own machine. Whatever comes of it
goes into the ledger, failures included. On SIGTERM, SIGINT and SIGUSR1 runs save their state, and the same command goes on from
there. With `--attached` the end of standard input does the same: the process that holds it has died.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairtune.core.console import say
from fairtune.core.errors import FairtuneError, LedgerError, Stopped
from fairtune.execution.executors.base import REFUSED
from fairtune.execution.executors.local import LocalExecutor
from fairtune.execution.executors.specs import OtherVersionError, read_spec
from fairtune.execution.failures import record_failure
from fairtune.ledger.seals import FINISHED, run_state
from fairtune.settings.execution import Execution
from fairtune.settings.values import AUTO
from fairtune.study.run_spec import RunSpec

DONE, LEFT, UNSEEN, OTHER_VERSION = 0, 75, 41, 43
"""Exit codes: all runs have ended; stopped, states saved; the files cannot be read here; they are of another fairtune."""
ATTACHED = "--attached"


def perform_specs(words: Sequence[str]) -> int:
    """Perform runs that are not finished yet, in this order. Returns the exit code."""
    files = [Path(word) for word in words if word != ATTACHED]
    try:
        found = [read_spec(file) for file in files]
    except LedgerError as error:
        _log(str(error))
        return OTHER_VERSION if isinstance(error, OtherVersionError) else UNSEEN
    if ATTACHED in words:
        threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    jobs = [job for job, _ in found if run_state(job.run, job.key).status != FINISHED]
    _log(f"{len(jobs)} of {len(found)} runs to perform")
    signals: list[int] = []
    try:
        with _stopping(signals):
            if jobs:
                _perform(jobs, found[0][1], files[0].parents[2])
        return DONE
    except Stopped:
        _log("stopped; states are saved")
        if signals == [signal.SIGUSR1] and (task := os.environ.get("SLURM_JOB_ID")):
            _log("the time is nearly up: back into the queue")
            subprocess.run(["scontrol", "requeue", task], check=False)
        return LEFT


def _perform(jobs: Sequence[RunSpec], execution: Execution, home: Path) -> None:
    if execution.workers == AUTO:  # one run at a time on each device that this process was given, so that times compare
        execution = execution.model_copy(update={"workers": 1})
    place = os.environ.get("SLURMD_NODENAME") or socket.gethostname().split(".")[0]
    label = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{place}-{os.getpid()}")[:60]
    executor = LocalExecutor(execution, home / "logs", label)
    left = {job.name: job for job in jobs}
    try:
        executor.submit(jobs)
        for event in executor.events():
            if event.is_last:
                del left[event.job.name]
                _log(f"{event.job.name}: {event.values.get('reason') or event.values['result']['status']}")
            if event.type == REFUSED:
                _refuse(event.job, str(event.values["reason"]))
    except FairtuneError as error:  # such as a GPU that is not there
        _log(str(error))
        for job in left.values():
            _refuse(job, str(error))
    finally:
        executor.stop()


def _refuse(job: RunSpec, reason: str) -> None:
    """Record a run that could not begin; in a folder of another plan nothing is written, and the log must do."""
    try:
        job.run.check_plan(job.as_json())
    except LedgerError as error:
        _log(str(error))
        return
    record_failure(job, reason, "input")


@contextmanager
def _stopping(signals: list[int]) -> Iterator[None]:
    """Let the first signal stop the work, with states saved; later ones are ignored, so that they do not cut that short."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)

    def stop(number: int, _: object) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        signals.append(number)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop_at_end_of_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _log(text: str) -> None:
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} fairtune: {text}")
