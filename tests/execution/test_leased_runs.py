"""A run is performed by one process among all machines: who waits gets the other's result, who was replaced writes nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from fairtune.core import locks
from fairtune.core.errors import LeaseLost, Stopped
from fairtune.core.locks import LEASE, LeaseWatch
from fairtune.execution.executors import performer
from fairtune.execution.executors.performer import held, perform_job
from fairtune.execution.run import perform_run
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.scan import LedgerScan
from fairtune.ledger.seals import INTERRUPTED, RUNNING, close_run, run_state
from tests.execution.conftest import ToyStudy, digests, perform_here


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(locks, "SILENCE_SECONDS", 5.0)


def everything(folder: RunFolder) -> dict[str, bytes]:
    files = (path for path in folder.path.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_a_run_that_was_taken_over_writes_nothing_more_and_goes_on_with_the_other(toy: ToyStudy) -> None:
    job, whole = toy.job("runs"), toy.job("whole")
    seen: dict[str, dict[str, bytes]] = {}

    def check_stop() -> None:
        pass

    with held(job.run, check_stop) as lease:

        def report(values: dict[str, Any]) -> None:
            if values.get("step") == 6 and not seen:
                (job.run.path / LEASE / str(lease.number + 1)).write_text('{"machine": "another"}')
                seen.update(before=everything(job.run))

        def check() -> None:
            if seen:
                lease.confirm()

        with pytest.raises(LeaseLost):
            perform_run(job, "cpu", check, report)
    assert everything(job.run) == seen["before"]
    os.utime(job.run.path / LEASE / "2", (0, 0))
    assert perform_job(job, "cpu", check_stop, lambda _: None)["status"] == "finished"
    perform_here(whole)
    assert digests(job.run.path) == digests(whole.run.path)
    assert not (job.run.path / LEASE).exists()


def test_who_waits_for_another_machine_gets_its_result(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    job = toy.job("runs")
    job.run.write_plan(job.as_json())
    lease = LeaseWatch(job.run.path).try_take()
    assert lease is not None
    monkeypatch.setattr(locks, "_machine", lambda: "another machine")
    assert run_state(job.run).status == RUNNING, "though nobody holds a lock here"
    said: list[dict[str, Any]] = []

    def report(values: dict[str, Any]) -> None:
        said.append(values)

        def finish() -> None:
            close_run(job.run, job.key, {"status": "finished", "signature": "x"})
            lease.release(finished=True)

        threading.Timer(0.05, finish).start()

    monkeypatch.setattr(performer, "LOOK_SECONDS", 0.01)
    assert perform_job(job, "cpu", lambda: None, report)["signature"] == "x"
    assert len(said) == 1
    assert said[0]["phase"] == "stage"
    assert "which performs this run" in said[0]["what"]


def test_who_waits_can_be_stopped_and_a_silent_run_is_interrupted(
    toy: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = toy.job("runs")
    job.run.write_plan(job.as_json())
    lease = LeaseWatch(job.run.path).try_take()
    assert lease is not None
    monkeypatch.setattr(locks, "_machine", lambda: "another machine")

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        perform_job(job, "cpu", stop, lambda _: None)
    lease.release(finished=False)
    assert run_state(job.run).status == INTERRUPTED


def test_leases_are_no_part_of_a_finished_run(toy: ToyStudy, tmp_path: Path) -> None:
    from fairtune.execution.study_files import record_plan
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    plan = make_plan(load_study({**toy.source, "arms": {"arm": {}}, "seeds": [0], "compare": {"to": "arm"}}))
    record_plan(plan, tmp_path / "runs" / "toy")
    job = toy.job("runs")
    job.run.write_plan(job.as_json())
    close_run(job.run, job.key, {"status": "finished", "signature": "x"})
    assert (
        LeaseWatch(job.run.path).try_take() is not None
    )  # such as of a process that was killed before it cleared away
    scan = LedgerScan(tmp_path / "runs")
    scan.tick()
    (row,) = scan.rows("toy")
    assert row.status == "finished"
