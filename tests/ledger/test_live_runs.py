"""A ledger that is watched: what the folders say, a moment later at most, whatever happens to them meanwhile."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_sealed
from fairtune.ledger import index, index_file, live_runs, live_study, watched_run
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, lock
from fairtune.ledger.index import NAME, refresh_index, study_status
from fairtune.ledger.live_runs import LiveRuns
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import run_folder, write_study
from fairtune.ledger.worker_signs import WorkerSign, write_sign

RESULT = {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": 0.8}}, "seconds": {"total": 3.5}}


class Clock:
    """The reader's own time, moved on by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now are believed, too, or each test would have to wait for seconds."""
    monkeypatch.setattr(index, "RACY", -1.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def plan(
    runs: Path, study: str = "s", arms: tuple[str, ...] = ("baseline", "other"), seeds: int = 2, **more: Any
) -> None:
    planned = [{"arm": arm, "seed": seed, "key": "k", "steps": 10} for seed in range(seeds) for arm in arms]
    known = {"plan": "p", "task": {"metric": "accuracy"}, "arms": {}, "compare": {}, "runs": planned}
    write_study(runs / study, {**known, **more})


def begin(runs: Path, arm: str = "baseline", seed: int = 0, study: str = "s", steps: int = 3) -> RunFolder:
    folder = run_folder(runs, study, arm, seed)
    folder.write_plan({"key": "k", "settings": {}, "signature": "sig"})
    train(folder, 1, steps)
    return folder


def train(folder: RunFolder, first: int, last: int) -> None:
    log = EventLog(folder.events)
    for step in range(first, last + 1):
        log.write("step", step, step=step, epoch=0, loss=1 / step, seconds=0.1)
    log.close()


def finish(runs: Path, arm: str = "baseline", seed: int = 0, study: str = "s") -> RunFolder:
    folder = begin(runs, arm, seed, study)
    close_run(folder, "k", dict(RESULT))
    return folder


def states(live: LiveRuns, study: str = "s") -> list[str]:
    return [row.status for row in live.rows(study)]


def write_index(live: LiveRuns, clock: Clock) -> None:
    clock.now += live_runs.AGAIN
    live.tick()


def test_a_study_is_shown_as_it_goes(tmp_path: Path, clock: Clock) -> None:
    plan(tmp_path)
    live = LiveRuns(tmp_path, clock=clock)
    assert live.tick() == {"s"}
    assert (live.studies, live.reading, live.problems) == (["s"], 1.0, {})
    assert states(live) == ["waiting"] * 4
    assert live.tick() == set()
    with ExitStack() as held:
        held.enter_context(lock(run_folder(tmp_path, "s", "other", 0).lock, "taken"))
        folder = begin(tmp_path, "other")
        assert live.tick() == {"s"}
        assert states(live) == ["waiting", "running", "waiting", "waiting"]
        progress = live.progress("s", "other", 0)
        assert (progress.step, progress.losses) == (3, ((1, 1.0), (2, 0.5), (3, 1 / 3)))
        train(folder, 4, 6)
        assert live.tick() == {"s"}
        assert live.progress("s", "other", 0).step == 6
        clock.now += 3.0
        live.tick()
        assert live.tick() == set(), "nothing happened"
    assert live.tick() == {"s"}
    assert states(live)[1] == "interrupted", "a lock that was held here is believed when it is let go"
    close_run(folder, "k", dict(RESULT))
    assert live.tick() == {"s"}
    assert [(row.status, row.score) for row in live.rows("s")][1] == ("finished", 0.8)
    assert live.is_ready("s", "other", 0)
    assert live.progress("s", "other", 0).losses[-1] == (6, pytest.approx(1 / 6, rel=1e-5))
    assert live.progress("s", "none", 7).step == 0
    begin(tmp_path, "later", 5)
    plan(tmp_path, arms=("baseline", "later"), seeds=6)
    assert live.tick() == {"s"}
    assert len(live.rows("s")) == 12, "the newest plan's"
    assert live.rows("s") == study_status(tmp_path, "s").runs


def test_rows_are_those_of_the_folders(tmp_path: Path, clock: Clock) -> None:
    plan(tmp_path, seeds=3)
    finish(tmp_path)
    failed = begin(tmp_path, "other")
    write_sealed(failed.result, {"status": "failed", "reason": "out of memory", "key": "k"})
    begin(tmp_path, "baseline", 1)
    finish(tmp_path, "other", 1).card.write_text("{}")
    finish(tmp_path, "other", 2).write_plan({"key": "earlier", "settings": {}, "signature": "x"})
    expected = study_status(tmp_path, "s").runs
    assert [row.status for row in expected] == ["finished", "failed", "interrupted", "damaged", "waiting", "waiting"]
    for _ in range(2):
        live = LiveRuns(tmp_path, "s", clock=clock)
        live.tick()
        assert live.rows("s") == expected
        write_index(live, clock)


class Opened:
    """Which runs are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows, self.events = list[str](), list[str]()
        make, tail = watched_run.make_row, watched_run.EventTail
        monkeypatch.setattr(
            watched_run, "make_row", lambda study, folder: (self.rows.append(folder.name), make(study, folder))[1]
        )
        monkeypatch.setattr(
            watched_run, "EventTail", lambda path: (self.events.append(Path(path).parent.name), tail(path))[1]
        )


def test_a_view_that_is_opened_again_reads_only_what_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    plan(tmp_path, arms=("baseline",), seeds=5)
    for seed in range(4):
        finish(tmp_path, seed=seed)
    first = LiveRuns(tmp_path, clock=clock)
    first.tick()
    curves = [first.progress("s", "baseline", seed).losses for seed in range(4)]
    write_index(first, clock)
    begin(tmp_path, seed=4)
    train(run_folder(tmp_path, "s", "baseline", 2), 4, 5)
    opened = Opened(monkeypatch)
    live = LiveRuns(tmp_path, clock=clock)
    live.tick()
    assert sorted(opened.rows) == ["baseline/seed-2", "baseline/seed-4"]
    assert states(live) == ["finished", "finished", "damaged", "finished", "interrupted"]
    assert [live.progress("s", "baseline", seed).losses for seed in (0, 1, 3)] == [
        tuple((step, pytest.approx(loss, rel=1e-5)) for step, loss in curves[seed]) for seed in (0, 1, 3)
    ]
    assert opened.events == []
    assert len(live.progress("s", "baseline", 2).losses) == 5, "a curve is that of the events as they are"


def test_curves_that_nobody_kept_are_read_bit_by_bit_once_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    plan(tmp_path)
    for arm in ("baseline", "other"):
        for seed in range(2):
            finish(tmp_path, arm, seed)
    refresh_index(tmp_path)
    opened = Opened(monkeypatch)
    live = LiveRuns(tmp_path, clock=clock)
    live.tick()
    live.tick()
    assert opened.events == [], "nobody asked"
    assert not live.is_ready("s", "other", 1)
    live.tick()
    assert len(opened.events) == 4
    assert live.is_ready("s", "other", 1)
    assert live.progress("s", "other", 1, whole=True).step == 3
    write_index(live, clock)
    assert len(index_file.read_curves(tmp_path / NAME, "s")) == 4


def test_a_large_ledger_without_an_index_is_read_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(live_runs, "SLICE", 0.0)
    plan(tmp_path, seeds=3)
    for seed in range(3):
        finish(tmp_path, seed=seed)
    live, shares = LiveRuns(tmp_path, clock=clock), []
    for _ in range(3):
        live.tick()
        shares.append(live.reading)
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    assert states(live).count("finished") == 3


def test_only_rows_that_changed_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    plan(tmp_path)
    for seed in range(2):
        finish(tmp_path, seed=seed)
    live, written = LiveRuns(tmp_path, clock=clock), list[Any]()
    fill = index_file._fill
    monkeypatch.setattr(
        index_file,
        "_fill",
        lambda path, rows, *rest: (written.append([row.arm for row in rows]), fill(path, rows, *rest)),
    )
    live.tick()
    finish(tmp_path, "other")
    write_index(live, clock)
    write_index(live, clock)
    assert written == [["baseline", "baseline"], ["other"]]
    refresh_index(tmp_path)
    assert len(written) == 2, "status finds it as it should be"
    finish(tmp_path, "other", 1)
    refresh_index(tmp_path)
    assert written[2:] == [["other"]]
    shutil.rmtree(tmp_path / "s" / "other")
    clock.now += live_runs.AGAIN
    live.tick()
    assert {row.arm for row in refresh_index(tmp_path)} == {"baseline"}
    assert set(index_file.read_rows(tmp_path / NAME) or ()) == {("s", "baseline", 0), ("s", "baseline", 1)}


@pytest.mark.parametrize("name", ["card.json", "events.jsonl", "result.json"])
def test_a_finished_run_that_somebody_changed_in_place_shows_in_turn(tmp_path: Path, clock: Clock, name: str) -> None:
    plan(tmp_path)
    folder = begin(tmp_path)
    folder.card.write_text("as it was")
    close_run(folder, "k", dict(RESULT))
    live = LiveRuns(tmp_path, clock=clock)
    live.tick()
    clock.now += 10
    live.tick()
    assert states(live)[0] == "finished"
    file = folder.path / name
    stat = file.stat()
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    live.tick()
    live.tick()
    assert states(live)[0] == "damaged"
    assert [row.status for row in refresh_index(tmp_path)] == ["damaged"], "status sees it at once"


def test_who_looks_only_once_can_have_every_file_looked_at(tmp_path: Path, clock: Clock) -> None:
    plan(tmp_path)
    folder = begin(tmp_path)
    folder.card.write_text("as it was")
    close_run(folder, "k", dict(RESULT))
    refresh_index(tmp_path)
    folder.card.write_text("otherwise")
    live = LiveRuns(tmp_path, thorough=True, clock=clock)
    live.tick()
    assert states(live)[0] == "damaged"


def test_a_run_of_another_machine_is_running_while_it_gives_signs_of_life(tmp_path: Path, clock: Clock) -> None:
    plan(tmp_path)
    folder = begin(tmp_path)
    live = LiveRuns(tmp_path, clock=clock)
    live.tick()
    assert states(live)[0] == "interrupted", "nobody holds its lock here"
    train(folder, 4, 4)
    assert live.tick() == {"s"}
    assert states(live)[0] == "running", "its events grow"
    clock.now += live_study.GROWING + 1
    assert live.tick() == {"s"}
    assert states(live)[0] == "interrupted"
    (tmp_path / "s" / "logs").mkdir()
    for beat in range(3):
        write_sign(tmp_path / "s" / "logs", WorkerSign("cpu-1", "cpu", run="baseline/seed-0", beat=beat))
        clock.now += 2
        assert live.tick() == {"s"}
        assert states(live)[0] == "running", "a worker says so"
        assert [(one.sign.run, one.fresh) for one in live.signs("s")] == [("baseline/seed-0", True)]
    clock.now += 60
    assert live.tick() == {"s"}
    assert states(live)[0] == "interrupted", "it says nothing any more"
    assert not live.signs("s")[0].fresh


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    plan(tmp_path)
    folder = finish(tmp_path)
    for time in (4e9, 1.0):
        os.utime(folder.events, (time, time))
        os.utime(folder.path, (time, time))
        monkeypatch.setattr("time.time", lambda time=time: 5e9 - time)
        live = LiveRuns(tmp_path, clock=clock)
        live.tick()
        assert states(live)[0] == "finished"
        clock.now += 10
        live.tick()
        assert live.tick() == set()


def test_a_study_that_goes_away_is_told_and_one_that_comes_back_is_shown(tmp_path: Path, clock: Clock) -> None:
    runs = tmp_path / "runs"
    plan(runs)
    plan(runs, "t")
    finish(runs)
    live = LiveRuns(runs, clock=clock)
    live.tick()
    (runs / "s").rename(tmp_path / "s")
    assert live.tick() == {"s"}
    assert (live.studies, live.rows("s")) == (["t"], [])
    assert "is gone: it was moved or deleted" in live.problems["s"]
    (tmp_path / "s").rename(runs / "s")
    assert live.tick() == {"s"}
    assert (live.problems, states(live)[0]) == ({}, "finished")
    (runs / "s" / "study.json").write_text('{"half')
    assert live.tick() == {"s"}
    assert "study.json is not readable JSON" in live.problems["s"]
    assert states(live)[0] == "finished", "what was known is shown still"
    write_sealed(runs / "s" / "study.json", {"task": {}, "arms": {}, "compare": {}, "runs": [{"arm": 3}]})
    live.tick()
    assert "is not a plan of this version" in live.problems["s"]
    plan(runs)
    live.tick()
    assert live.problems == {}
    shutil.rmtree(runs)
    with pytest.raises(LedgerError, match="cannot be read"):
        live.tick()


def test_a_study_that_is_not_there_is_a_problem_and_a_missing_folder_an_error(tmp_path: Path, clock: Clock) -> None:
    live = LiveRuns(tmp_path, "none", clock=clock)
    live.tick()
    assert "no study 'none'" in live.problems["none"]
    plan(tmp_path, "none")
    live.tick()
    assert (live.problems, live.studies) == ({}, ["none"])
    with pytest.raises(LedgerError, match="cannot be read"):
        LiveRuns(tmp_path / "nowhere").tick()
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be read"):
        LiveRuns(tmp_path / "file").tick()


@pytest.mark.parametrize("fault", ["garbage", "other version", "locked", "folder", "row", "curve"])
def test_the_index_never_stands_in_the_way(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(index_file, "PATIENCE", 0.01)
    monkeypatch.setattr(live_runs, "PATIENCE", 0.01)
    plan(tmp_path)
    finish(tmp_path)
    first = LiveRuns(tmp_path, clock=clock)
    first.tick()
    expected, losses = first.rows("s"), first.progress("s", "baseline", 0).losses
    write_index(first, clock)
    file, held = tmp_path / NAME, ExitStack()
    if fault == "locked":
        database = sqlite3.connect(file)
        database.execute("BEGIN EXCLUSIVE")
        held.callback(database.close)
    elif fault in ("row", "curve"):
        database = sqlite3.connect(file)
        with database:
            database.execute("UPDATE runs SET score = 0.99" if fault == "row" else "UPDATE curves SET curve = '{}'")
        database.close()
    else:
        file.unlink()
        if fault == "garbage":
            file.write_bytes(os.urandom(5000))
        elif fault == "folder":
            file.mkdir()
        else:
            database = sqlite3.connect(file)
            database.execute("CREATE TABLE runs (study, arm, seed, status)")
            database.close()
    with held:
        live = LiveRuns(tmp_path, clock=clock)
        live.tick()
        assert live.rows("s") == expected
        assert [step for step, _ in live.progress("s", "baseline", 0).losses] == [step for step, _ in losses]
        write_index(live, clock)
    assert refresh_index(tmp_path) == expected[:1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_ledger_that_may_only_be_read_is_watched_all_the_same(tmp_path: Path, clock: Clock) -> None:
    runs = tmp_path / "runs"
    plan(runs)
    finish(runs)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    os.seteuid(65534)
    try:
        live = LiveRuns(runs, clock=clock)
        live.tick()
        write_index(live, clock)
        assert states(live)[0] == "finished"
        assert live.progress("s", "baseline", 0).step == 3
        assert live.is_ready("s", "baseline", 0)
    finally:
        os.seteuid(0)
    assert not (runs / NAME).exists()
