"""Two machines never do the same work: leases taken, beaten, taken over after silence, and lost by who was away too long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fairtune.core import leases
from fairtune.core.errors import LeaseLost
from fairtune.core.leases import (
    FOLDER,
    Holder,
    Lease,
    LeaseTimes,
    LeaseWatch,
    held_by_us,
    is_leased,
    require_held,
    see_lease,
)

ROOT = Path(__file__).parents[2]
QUICK = LeaseTimes(beat=0.02, silence=0.2, look=0.01)
NEVER = LeaseTimes(beat=3600, silence=7200)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def take(folder: Path, times: LeaseTimes = NEVER) -> Lease:
    lease = LeaseWatch(folder, times).try_take()
    assert lease is not None
    return lease


def die(lease: Lease) -> None:
    """Its process is gone, without a word."""
    lease._ended.set()
    lease._thread.join()


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks from now on is on another machine than whoever has taken a lease."""
    monkeypatch.setattr(leases, "boot_name", lambda: "another")


def test_one_holder_at_a_time_and_nothing_is_left_of_a_finished_one(tmp_path: Path) -> None:
    lease = take(tmp_path)
    assert LeaseWatch(tmp_path, NEVER).try_take() is None
    assert is_leased(tmp_path)
    lease.release(finished=False)
    assert not is_leased(tmp_path)
    again = take(tmp_path)
    assert again.generation == 2
    again.release(finished=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("other_machine")
def test_a_holder_that_beats_is_never_replaced_and_a_silent_one_is_by_the_watchers_clock(tmp_path: Path) -> None:
    clock, lease = Clock(), take(tmp_path)
    watch = LeaseWatch(tmp_path, LeaseTimes(silence=60), clock)
    for _ in range(5):
        assert watch.try_take() is None
        clock.now += 50
        assert lease._beat()
    os.utime(tmp_path / FOLDER / "1", (1, 1))  # a clock that is wrong by decades says nothing
    assert watch.try_take() is None
    clock.now += 59
    assert watch.try_take() is None
    clock.now += 2
    taken = watch.try_take()
    assert taken is not None
    assert taken.generation == 2
    with pytest.raises(LeaseLost):
        lease.confirm()
    lease.release(finished=True)
    assert is_leased(tmp_path), "who lost it clears nothing away"
    taken.release(finished=True)


@pytest.mark.usefixtures("other_machine")
def test_of_many_takers_of_a_dead_holders_lease_one_gets_it(tmp_path: Path) -> None:
    die(take(tmp_path))
    clocks = [Clock() for _ in range(8)]
    watches = [LeaseWatch(tmp_path, LeaseTimes(silence=60), clock) for clock in clocks]
    assert not any(watch.try_take() for watch in watches)
    for clock in clocks:
        clock.now = 61.0
    found: list[Lease | None] = []
    threads = [threading.Thread(target=lambda watch=watch: found.append(watch.try_take())) for watch in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (lease,) = [one for one in found if one is not None]
    lease.release(finished=True)


def test_a_dead_process_of_this_machine_needs_no_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Holder("here", leases.boot_name(), 2**22 + 1, "1")
    monkeypatch.setattr(Holder, "here", classmethod(lambda _: gone))
    die(take(tmp_path))
    monkeypatch.undo()
    assert not is_leased(tmp_path)
    lease = take(tmp_path)
    assert lease.generation == 2
    lease.release(finished=True)


def test_an_id_that_another_process_has_now_is_dead(tmp_path: Path) -> None:
    lease = take(tmp_path)
    seen = see_lease(tmp_path)
    assert seen is not None
    assert seen.holder is not None
    assert not seen.holder.is_dead
    assert Holder(seen.holder.host, seen.holder.boot, seen.holder.pid, "7").is_dead
    lease.release(finished=True)


@pytest.mark.usefixtures("other_machine")
def test_who_was_away_too_long_asks_the_disk_and_stops(tmp_path: Path) -> None:
    lease = take(tmp_path, LeaseTimes(beat=3600, silence=0.1))
    lease.check()
    time.sleep(0.06)
    lease.check()  # nobody has taken over, so it goes on
    watch = LeaseWatch(tmp_path, LeaseTimes(silence=0.05))
    while (taken := watch.try_take()) is None:
        time.sleep(0.02)
    time.sleep(0.06)
    with held_by_us(lease), pytest.raises(LeaseLost):
        require_held(tmp_path)
    with pytest.raises(LeaseLost):
        lease.check()
    die(lease)
    taken.release(finished=True)


def test_the_thread_beats_and_ends(tmp_path: Path) -> None:
    lease = take(tmp_path, QUICK)
    seen = see_lease(tmp_path)
    assert seen is not None
    for _ in range(500):
        if (now := see_lease(tmp_path)) is not None and now.content != seen.content:
            break
        time.sleep(0.01)
    else:
        pytest.fail("no beat")
    lease.release(finished=True)
    assert not lease._thread.is_alive()


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    lease = take(tmp_path)
    assert LeaseWatch(tmp_path, NEVER).try_take() is None
    assert not leases._create(tmp_path / FOLDER / "1", b"")
    lease.release(finished=True)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff" * 512, b'{"host": 1, "boot": 2, "pid": "x", "mark": 3}']
)
def test_what_cannot_be_read_counts_as_held_until_it_was_silent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "3").write_bytes(content)
    clock = Clock()
    watch = LeaseWatch(tmp_path, LeaseTimes(silence=60), clock)
    assert watch.try_take() is None
    clock.now = 61.0
    lease = watch.try_take()
    assert lease is not None
    assert lease.generation == 4
    lease.release(finished=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="its processes are forked")
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


PAUSED = """
import os, signal, sys
from pathlib import Path
from fairtune.core import leases
from fairtune.core.errors import LeaseLost
leases.boot_name = lambda: "another machine"
folder = Path(sys.argv[1])
lease = leases.LeaseWatch(folder, leases.LeaseTimes(beat=0.05, silence=0.3)).try_take()
(folder / "work").write_text("once")
os.kill(os.getpid(), signal.SIGSTOP)
try:
    lease.check()
except LeaseLost:
    lease.release(finished=True)
    sys.exit(7)
(folder / "work").write_text("twice")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process is stopped")
def test_who_wakes_up_after_somebody_took_over_writes_nothing(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", PAUSED, str(tmp_path)], cwd=ROOT)
    try:
        os.waitpid(holder.pid, os.WUNTRACED)
        watch = LeaseWatch(tmp_path, LeaseTimes(beat=60, silence=0.3))
        while (lease := watch.try_take()) is None:
            time.sleep(0.02)
        os.kill(holder.pid, signal.SIGCONT)
        assert holder.wait(60) == 7
    finally:
        holder.kill()
        holder.wait()
    assert (tmp_path / "work").read_text() == "once"
    assert is_leased(tmp_path)
    lease.release(finished=True)
