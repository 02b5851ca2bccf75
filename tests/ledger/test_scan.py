"""A ledger that is watched: what the folders say, a moment later at most, whatever happens to them meanwhile."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_sealed
from fairtune.ledger import seals
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, lock, run_folder
from fairtune.ledger.scan import LedgerScan
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study
from fairtune.ledger.worker_signs import WorkerSign, write_sign

RESULT = {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": 0.8}}, "seconds": {"total": 3.5}}


def plan(runs: Path, study: str = "s", arms: tuple[str, ...] = ("baseline", "other"), seeds: int = 2) -> None:
    planned = [{"arm": arm, "seed": seed, "key": "k", "steps": 10} for seed in range(seeds) for arm in arms]
    write_study(runs / study, {"plan": "p", "task": {"metric": "accuracy"}, "arms": {}, "compare": {}, "runs": planned})


def begin(runs: Path, arm: str = "baseline", seed: int = 0, study: str = "s") -> RunFolder:
    folder = run_folder(runs, study, arm, seed)
    folder.write_plan({"key": "k", "settings": {}, "signature": "sig"})
    train(folder, 1, 3)
    return folder


def train(folder: RunFolder, first: int, last: int) -> None:
    log = EventLog(folder.events)
    for step in range(first, last + 1):
        log.write("step", step, step=step, epoch=0, loss=1 / step, seconds=0.1)
    log.close()


def finish(runs: Path, arm: str = "baseline", seed: int = 0, study: str = "s", **result: Any) -> RunFolder:
    folder = begin(runs, arm, seed, study)
    folder.card.write_text("as it was")
    close_run(folder, "k", {**RESULT, **result})
    return folder


def fail(folder: RunFolder) -> None:
    write_sealed(folder.result, {"status": "failed", "reason": "out of memory", "key": "k"})


def look(runs: Path) -> LedgerScan:
    live = LedgerScan(runs)
    live.tick()
    return live


def states(live: LedgerScan, study: str = "s") -> list[str]:
    return [row.status for row in live.rows(study)]


def test_a_study_is_shown_as_it_goes(tmp_path: Path) -> None:
    plan(tmp_path)
    live = LedgerScan(tmp_path)
    assert live.tick() == {"s"}
    assert (live.studies, live.problems) == (["s"], {})
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
        assert live.tick() == set(), "nothing happened"
    assert live.tick() == {"s"}
    assert states(live)[1] == "interrupted"
    close_run(folder, "k", dict(RESULT))
    assert live.tick() == {"s"}
    row = live.rows("s")[1]
    assert (row.status, row.metric, row.score, row.seconds) == ("finished", "accuracy", 0.8, 3.5)
    assert live.progress("s", "none", 7).step == 0
    finish(tmp_path, "later", 5)
    plan(tmp_path, arms=("baseline", "later"), seeds=6)
    assert live.tick() == {"s"}
    assert states(live) == ["waiting"] * 11 + ["finished"], "the newest plan's"
    shutil.rmtree(tmp_path / "s" / "later")
    assert live.tick() == {"s"}
    assert states(live)[-1] == "waiting"


def test_rows_are_those_of_the_folders(tmp_path: Path) -> None:
    plan(tmp_path, seeds=4)
    finish(tmp_path)
    fail(begin(tmp_path, "other"))
    begin(tmp_path, "baseline", 1)
    finish(tmp_path, "other", 1).card.write_text("{}")
    finish(tmp_path, "baseline", 2).write_plan({"key": "earlier", "settings": {}, "signature": "x"})
    finish(tmp_path, "other", 2, metrics={"test": {}}, seconds={})
    finish(tmp_path, "baseline", 3).path.rename(tmp_path / "s" / "baseline" / "seed-3-old")
    finish(tmp_path, "other", 3).path.rename(tmp_path / "s" / "other" / "seed-03")
    rows = look(tmp_path).rows("s")
    found = ["finished", "failed", "interrupted", "damaged", "waiting", "finished", "waiting", "waiting"]
    assert [row.status for row in rows] == found
    assert (rows[1].reason, rows[3].reason) == ("out of memory", "card.json was changed after the run was closed")
    assert (rows[5].metric, rows[5].score, rows[5].seconds) == ("accuracy", None, None)


@pytest.mark.parametrize("name", ["plan.json", "card.json", "events.jsonl", "manifest.json", "result.json"])
def test_a_finished_run_that_was_changed_in_place_shows_in_the_next_look(tmp_path: Path, name: str) -> None:
    plan(tmp_path)
    file = finish(tmp_path).path / name
    live = look(tmp_path)
    stat, content = file.stat(), file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert live.tick() == {"s"}
    assert states(live)[0] == states(look(tmp_path))[0] == "damaged"
    file.write_bytes(content)
    live.tick()
    assert states(live)[0] == "finished"


def test_what_has_not_moved_is_not_read_again_by_a_report_of_a_watched_study_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(tmp_path)
    for arm in ("baseline", "other"):
        finish(tmp_path, arm)
    read: list[str] = []
    state = seals.run_state
    monkeypatch.setattr(seals, "run_state", lambda folder: (read.append(folder.name), state(folder))[1])
    live = look(tmp_path)
    assert sorted(read) == ["baseline/seed-0", "other/seed-0"]
    finish(tmp_path, "other", 1)
    for _ in range(3):
        live.tick()
    now = live.states.state(run_folder(tmp_path, "s", "other", 1))
    assert (now.of("k").status, now.of("of another plan").status) == ("finished", "waiting")
    assert read[2:] == ["other/seed-1"]


def test_a_sign_of_a_worker_is_news(tmp_path: Path) -> None:
    plan(tmp_path)
    live = look(tmp_path)
    (tmp_path / "s" / "logs").mkdir()
    for beat in range(2):
        write_sign(tmp_path / "s" / "logs", WorkerSign("cpu-1", "cpu", run="baseline/seed-0", beat=beat))
        assert live.tick() == {"s"}
        assert [(one.sign.run, one.fresh) for one in live.signs("s")] == [("baseline/seed-0", True)]


def test_a_study_that_goes_away_is_told_and_one_that_comes_back_is_shown(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    plan(runs)
    plan(runs, "t")
    finish(runs)
    live = LedgerScan(runs)
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


def test_a_study_that_is_not_there_is_a_problem_and_a_missing_folder_an_error(tmp_path: Path) -> None:
    live = LedgerScan(tmp_path, "none")
    live.tick()
    assert "no study 'none'" in live.problems["none"]
    plan(tmp_path, "none")
    live.tick()
    assert (live.problems, live.studies) == ({}, ["none"])
    (tmp_path / "file").touch()
    for missing in ("nowhere", "file"):
        with pytest.raises(LedgerError, match="cannot be read"):
            LedgerScan(tmp_path / missing).tick()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user who may not write")
def test_a_ledger_that_may_only_be_read_is_watched_and_what_may_not_be_read_hides_no_other(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    plan(runs)
    plan(runs, "shut")
    finish(runs)
    finish(runs, "other").path.chmod(0o700)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (runs / "shut").chmod(0o700)
    os.seteuid(65534)
    try:
        live = look(runs)
        assert live.studies == ["s"]
        assert states(live) == ["finished", "damaged", "waiting", "waiting"]
        assert live.progress("s", "baseline", 0).step == 3
    finally:
        os.seteuid(0)
