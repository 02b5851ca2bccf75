"""Locks end with their process; leases are kept, taken over after silence, and lost by who was away too long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairtune.core import locks
from fairtune.core.errors import LeaseLost, LedgerError, Stopped
from fairtune.core.locks import LEASE, Lease, LeaseWatch, is_leased, is_locked, require_held, wait_for_lock
from fairtune.ledger.folders import lock

HOLDER = """
import sys, pathlib
from fairtune.ledger.folders import lock
with lock(pathlib.Path(sys.argv[1]), "taken"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_of_another_process_is_seen_and_ends_when_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert is_locked(path)
        with pytest.raises(LedgerError, match="taken"), lock(path, "taken"):
            pass

        def stop() -> None:
            raise Stopped

        with pytest.raises(Stopped), wait_for_lock(path, stop):
            pass
        holder.kill()
    assert not is_locked(path)
    with lock(path, "taken"):
        assert is_locked(path)


def test_a_lock_that_is_not_there_is_free_and_is_not_made_by_asking(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / ".lock")
    assert not (tmp_path / ".lock").exists()


def test_where_there_are_no_locks_everybody_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: object, **__: object) -> bool:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(locks.fcntl, "flock", lacking)
    with lock(tmp_path / ".lock", "taken"), lock(tmp_path / ".lock", "taken"):
        assert not is_locked(tmp_path / ".lock")


ROOT = Path(__file__).parents[2]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return time.time()


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 3600.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(locks, "time", clock)
    return clock


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes a lease is on a machine of its own."""
    numbers = iter(range(1000))
    monkeypatch.setattr(locks, "_machine", lambda: str(next(numbers)))


def take(folder: Path) -> Lease:
    lease = LeaseWatch(folder).try_take()
    assert lease is not None
    return lease


def test_one_owner_at_a_time_and_nothing_is_left_of_a_finished_one(tmp_path: Path) -> None:
    lease = take(tmp_path)
    assert LeaseWatch(tmp_path).try_take() is None
    assert is_leased(tmp_path)
    lease.release(finished=False)
    assert not is_leased(tmp_path)
    again = take(tmp_path)
    again.release(finished=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("other_machine")
def test_an_owner_that_beats_is_never_replaced_and_a_silent_one_is_by_the_watchers_clock(
    tmp_path: Path, clock: Clock
) -> None:
    lease = take(tmp_path)
    watch = LeaseWatch(tmp_path)
    for _ in range(5):
        assert watch.try_take() is None
        clock.now += 50
        lease.confirm()
    os.utime(tmp_path / LEASE / "1", (1, 1))  # a clock that is wrong by decades says nothing
    assert watch.try_take() is None
    clock.now += 59
    assert watch.try_take() is None
    clock.now += 2
    taken = watch.try_take()
    assert taken is not None
    with pytest.raises(LeaseLost):
        lease.confirm()
    lease.release(finished=True)
    assert is_leased(tmp_path), "an owner that lost it clears nothing away"
    taken.release(finished=True)


@pytest.mark.usefixtures("other_machine")
def test_of_two_that_see_a_dead_owner_at_once_one_gets_the_lease(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(tmp_path)
    first, second = LeaseWatch(tmp_path), LeaseWatch(tmp_path)
    assert first.try_take() is second.try_take() is None
    clock.now, seen = 61.0, locks._look(tmp_path / LEASE)
    taken = first.try_take()
    assert taken is not None
    monkeypatch.setattr(locks, "_look", lambda _: seen)  # the second looked before the first took it
    assert second.try_take() is None


@pytest.mark.parametrize("began", [0.0, None])
def test_a_dead_process_of_this_machine_needs_no_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began: float | None
) -> None:
    """One that is gone, and one whose id another process has now."""
    ours = locks._this_process()
    gone = {**ours, "pid": 2**22 + 1} if began is None else {**ours, "began": began}
    monkeypatch.setattr(locks, "_this_process", lambda: gone)
    take(tmp_path)
    assert not is_leased(tmp_path)
    assert take(tmp_path).number == 2


@pytest.mark.usefixtures("other_machine")
def test_an_owner_that_was_away_too_long_asks_the_disk_and_stops(tmp_path: Path, clock: Clock) -> None:
    lease, watch = take(tmp_path), LeaseWatch(tmp_path)
    lease.check()
    assert watch.try_take() is None
    clock.now = 61.0
    assert watch.try_take() is not None
    with pytest.raises(LeaseLost):
        lease.check()
    locks._held[str(tmp_path)] = lease
    with pytest.raises(LeaseLost):
        require_held(tmp_path)


def test_the_thread_beats_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
    lease, file = take(tmp_path), tmp_path / LEASE / "1"
    before, until = file.stat().st_mtime_ns, time.monotonic() + 20
    while file.stat().st_mtime_ns == before:
        assert time.monotonic() < until
        time.sleep(0.01)
    lease.release(finished=True)
    assert not lease._thread.is_alive()


def test_a_thousand_runs_with_random_kills_finish_once_each(tmp_path: Path) -> None:
    runs = 1000
    for run in range(runs):
        (tmp_path / str(run)).mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.core.lease_hive", str(tmp_path), str(runs), "4", "7"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.stdout.split() == ["40", "3"], "it was not over before all were killed"
    folders = [tmp_path / str(run) for run in range(runs)]
    assert all((folder / "result").exists() for folder in folders)
    assert not [folder.name for folder in folders if (folder / "twice").exists()]
