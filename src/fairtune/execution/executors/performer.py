"""One job performed under its run's lock and lease: by local workers, and so by whoever starts those on other machines.

The lock guards runs on one machine, at once and for nothing; the lease among machines, whose locks may not know each other. Where
another process has the run, this one waits for it: what that one finishes is this one's result, and what it leaves is taken up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fairtune.core.errors import LeaseLost, LedgerError
from fairtune.core.leases import TIMES, Lease, LeaseTimes, LeaseWatch, held_by_us
from fairtune.core.locks import is_locked
from fairtune.core.stages import stage, watched
from fairtune.execution.job import Job
from fairtune.ledger.folders import RunFolder, lock
from fairtune.ledger.seals import FINISHED, run_state

REPORT_SECONDS = 0.2
LOCK_SECONDS = 60.0
LOOK_SECONDS = 0.2
Report = Callable[[dict[str, Any]], None]
CheckStop = Callable[[], None]


def perform_job(job: Job, device: str, check_stop: CheckStop, report: Report) -> dict[str, Any]:
    """Perform a run, alone among all processes. Returns its result, finished or failed, by this process or by another.

    Args:
        report: takes what happens, a few times a second at most.

    Raises:
        Stopped: it was asked to stop; its state is saved.
        FairtuneError: the run cannot be begun.
    """
    from fairtune.execution.run import perform_run

    last = 0.0

    def report_some(values: dict[str, Any]) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_SECONDS or values.get("phase") != "train":
            last = time.monotonic()
            report(values)

    with watched(StageReports(report)):
        while True:
            with _locked(job.run, check_stop), leased(job.run, check_stop) as lease:

                def check(lease: Lease = lease) -> None:
                    lease.check()  # first: who stops saves its state
                    check_stop()

                if (done := run_state(job.run, job.plan["key"])).status == FINISHED:
                    return done.result
                try:
                    return perform_run(job.spec, job.run, device, check, report_some)
                except LeaseLost:
                    continue  # to wait for whoever has it now


@contextmanager
def leased(run: RunFolder, check_stop: CheckStop, times: LeaseTimes = TIMES) -> Iterator[Lease]:
    """Hold a run's lease, as soon as no other process does; a finished run keeps nothing of it."""
    watch = LeaseWatch(run.path, times)
    lease = _take(watch)
    if lease is None:
        by = "another process" if watch.holder is None else watch.holder.name
        with stage(f"waiting for {by}, which performs this run"):
            while lease is None:
                check_stop()
                time.sleep(min(LOOK_SECONDS, times.look))
                lease = _take(watch)
    try:
        with held_by_us(lease):
            yield lease
    finally:
        lease.release(finished=run.result.exists() and run.manifest.exists())


def _take(watch: LeaseWatch) -> Lease | None:
    try:
        return watch.try_take()
    except OSError as error:
        where = error.filename or "the run's folder"
        raise LedgerError(f"{where}: the run's lease cannot be written ({error.strerror}); fix that.") from None


@contextmanager
def _locked(run: RunFolder, check_stop: CheckStop) -> Iterator[None]:
    """Hold the run's lock; a worker whose parent was killed may still be saving this very run."""
    waited = time.monotonic()
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(lock(run.lock, f"{run.path}: another process is performing this run."))
                break
            except LedgerError:
                if time.monotonic() - waited >= LOCK_SECONDS or not is_locked(run.lock):
                    raise
            check_stop()
            time.sleep(LOOK_SECONDS)
        yield


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
