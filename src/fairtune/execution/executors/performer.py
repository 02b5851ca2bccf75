"""One job performed under its run's lock and lease, by every worker on every machine.

The lock guards runs on one machine, at once and at no cost; the lease among machines, whose locks may not know each other. Where
another process has the run, this one waits: what that one finishes is this one's result, and what it leaves is taken up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fairtune.core.errors import LeaseLost, LedgerError
from fairtune.core.locks import Lease, LeaseWatch, wait_for_lock
from fairtune.core.stages import stage, watched
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import FINISHED, run_state
from fairtune.study.run_spec import RunSpec

REPORT_SECONDS = 0.2
LOOK_SECONDS = 0.2
Report = Callable[[dict[str, Any]], None]
CheckStop = Callable[[], None]


def perform_job(job: RunSpec, device: str, check_stop: CheckStop, report: Report) -> dict[str, Any]:
    """Perform a run, alone among all processes. Returns its result, finished or failed, by this process or by another.

    Args:
        report: takes what happens, a few times a second at most.

    Raises:
        Stopped: it was asked to stop; its state is saved.
        FairtuneError: the run cannot be begun.
    """
    from fairtune.execution.run import perform_run
    from fairtune.execution.smoke import perform_smoke

    if job.smoke:
        return perform_smoke(job, device, check_stop)
    last = 0.0

    def report_some(values: dict[str, Any]) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_SECONDS or values.get("phase") != "train":
            last = time.monotonic()
            report(values)

    with watched(StageReports(report)):
        while True:
            with held(job.run, check_stop) as lease:

                def check(lease: Lease = lease) -> None:
                    lease.check()  # first: a run that stops saves its state
                    check_stop()

                if (done := run_state(job.run, job.key)).status == FINISHED:
                    return done.result
                try:
                    return perform_run(job, device, check, report_some)
                except LeaseLost:
                    continue  # to wait for the process that has it now


@contextmanager
def held(run: RunFolder, check_stop: CheckStop) -> Iterator[Lease]:
    """Hold a run's lock and its lease, as soon as no other process does; a finished run keeps nothing of the lease."""
    with ExitStack() as kept:
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            with ExitStack() as told:
                said = False

                def wait() -> None:
                    nonlocal said
                    check_stop()
                    if not said:
                        said = True
                        told.enter_context(stage("waiting for another process, which performs this run"))

                kept.enter_context(wait_for_lock(run.lock, wait))
                watch = LeaseWatch(run.path)
                while (lease := watch.try_take()) is None:
                    wait()
                    time.sleep(LOOK_SECONDS)
        except OSError as error:
            where = error.filename or run.path
            raise LedgerError(f"{where}: the run cannot be locked ({error.strerror}); fix that.") from None
        try:
            yield lease
        finally:
            lease.release(finished=run.result.exists() and run.manifest.exists())


class StageReports:
    """Reports what a run does before it trains, such as tokenising."""

    def __init__(self, report: Report) -> None:
        self._report, self._last = report, 0.0
        self._open: list[dict[str, Any]] = []

    def begin(self, what: str, total: int | None) -> None:
        self._open.append({"phase": "stage", "what": what, "done": 0, "of": total})
        self._report(dict(self._open[-1]))

    def advance(self, count: int) -> None:
        self._open[-1]["done"] += count
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self._last = time.monotonic()
            self._report(self._open[-1])

    def end(self) -> None:
        self._open.pop()
