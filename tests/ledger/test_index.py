"""The index: the same answers as the folders give, whatever became of it or of them."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_sealed
from fairtune.ledger import index, index_file
from fairtune.ledger.folders import RunFolder, lock
from fairtune.ledger.index import NAME, IndexRow, planned_status, refresh_index, study_status
from fairtune.ledger.seals import close_run, run_facts, run_state
from fairtune.ledger.studies import run_folder, run_folders, write_study


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now are believed, too, or each test would have to wait for seconds."""
    monkeypatch.setattr(index, "RACY", -1.0)


def make_run(
    runs: Path, arm: str = "baseline", seed: int = 0, score: float | None = 0.8, study: str = "s"
) -> RunFolder:
    write_study(runs / study, {"study": study, "plan": "p"})
    folder = run_folder(runs, study, arm, seed)
    folder.write_plan({"key": "k", "settings": {}, "signature": "sig"})
    if score is not None:
        result = {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": score}}}
        close_run(folder, "k", {**result, "seconds": {"total": 3.5}, "signature": "sig"})
    return folder


def stored(runs: Path) -> list[IndexRow]:
    """What the file holds."""
    return sorted((index_file.read_rows(runs / NAME) or {}).values(), key=lambda row: (row.study, row.arm, row.seed))


def test_the_index_has_one_row_per_run(tmp_path: Path) -> None:
    make_run(tmp_path, "baseline", 0, 0.8)
    make_run(tmp_path, "oelm", 1, None)
    failed = make_run(tmp_path, "oelm", 2, None, study="t")
    write_sealed(failed.result, {"status": "failed", "reason": "out of memory", "key": "k"})
    rows = {(r.study, r.arm, r.seed): r for r in refresh_index(tmp_path)}
    assert set(rows) == {("s", "baseline", 0), ("s", "oelm", 1), ("t", "oelm", 2)}
    done = rows["s", "baseline", 0]
    assert (done.status, done.metric, done.score, done.seconds) == ("finished", "accuracy", 0.8, 3.5)
    assert rows["s", "oelm", 1].status == "interrupted"
    assert (rows["t", "oelm", 2].status, rows["t", "oelm", 2].reason) == ("failed", "out of memory")
    assert stored(tmp_path) == sorted(rows.values(), key=lambda r: (r.study, r.arm, r.seed))


def test_a_run_that_holds_its_lock_is_running(tmp_path: Path) -> None:
    folder = make_run(tmp_path, score=None)
    with lock(folder.path / ".lock", "taken"):
        assert refresh_index(tmp_path)[0].status == "running"
    assert refresh_index(tmp_path)[0].status == "interrupted"


@pytest.mark.parametrize("fault", ["deleted", "garbage", "empty", "other table", "folder"])
def test_a_lost_or_damaged_index_is_rebuilt(tmp_path: Path, fault: str) -> None:
    make_run(tmp_path)
    rows = refresh_index(tmp_path)
    file = tmp_path / NAME
    file.unlink()
    if fault == "garbage":
        file.write_bytes(os.urandom(5000))
    elif fault == "empty":
        file.touch()
    elif fault == "other table":
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE runs (something)")
        database.commit()
        database.close()
    elif fault == "folder":
        file.mkdir()
    assert refresh_index(tmp_path) == rows
    assert refresh_index(tmp_path) == rows
    if fault != "folder":
        database = sqlite3.connect(file)
        assert database.execute("SELECT count(*), max(score) FROM runs").fetchone() == (1, 0.8)
        database.close()


def test_an_index_that_cannot_be_written_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path)
    monkeypatch.setattr("fairtune.ledger.index.NAME", "../../../../../proc/nowhere/index.sqlite")
    assert [row.score for row in refresh_index(tmp_path)] == [0.8]


def test_the_index_forgets_runs_that_are_gone_and_no_runs_is_no_rows(tmp_path: Path) -> None:
    assert refresh_index(tmp_path / "none") == []
    folder = make_run(tmp_path)
    make_run(tmp_path, "other")
    assert len(refresh_index(tmp_path)) == 2
    shutil.rmtree(folder.path)
    refresh_index(tmp_path)
    assert [row.arm for row in stored(tmp_path)] == ["other"]


def test_a_folder_moved_aside_is_no_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    make_run(tmp_path, seed=1)
    folder.path.rename(folder.path.with_name("seed-0-old"))
    assert [row.seed for row in refresh_index(tmp_path)] == [1]


@pytest.mark.parametrize(
    "result",
    [
        {"status": "finished", "metric": "accuracy", "metrics": None},
        {"status": "finished", "metric": ["accuracy"], "metrics": {"test": 3}, "seconds": "long"},
        {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": {"no": 1}}}, "seconds": {"total": "x"}},
    ],
)  # fmt: skip
def test_a_strange_run_is_indexed_and_does_not_hide_the_others(tmp_path: Path, result: dict[str, Any]) -> None:
    make_run(tmp_path, study="other")
    strange = make_run(tmp_path, "strange", 0, None)
    close_run(strange, "k", result)
    rows = {row.arm: row for row in refresh_index(tmp_path)}
    assert rows["baseline"].score == 0.8
    assert (rows["strange"].status, rows["strange"].score, rows["strange"].seconds) == ("finished", None, None)
    assert {row.arm for row in stored(tmp_path)} == {"baseline", "strange"}


def test_half_a_surrogate_pair_in_a_reason_does_not_stand_in_the_way(tmp_path: Path) -> None:
    make_run(tmp_path)
    row = replace(refresh_index(tmp_path)[0], arm="odd", reason="no such file: \ud800")
    index_file.write_rows(tmp_path / NAME, [row])
    assert [one.reason for one in stored(tmp_path) if one.arm == "odd"] == [r"no such file: \ud800"]


def test_a_folder_with_a_number_that_no_index_holds_does_not_stop_the_others(tmp_path: Path) -> None:
    make_run(tmp_path)
    for seed in (2**63, 2**64, 10**200):
        make_run(tmp_path, seed=seed)
    assert [row.seed for row in refresh_index(tmp_path)] == [0]
    assert [row.seed for row in stored(tmp_path)] == [0]
    assert len(run_folders(tmp_path / "s")) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_folders_that_may_not_be_read_do_not_hide_the_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    make_run(runs, study="open")
    make_run(runs, study="shut")
    shut = make_run(runs, "arm", 0, study="half")
    make_run(runs, "arm", 1, study="half")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (runs / "shut").chmod(0o700)
    shut.path.chmod(0o700)
    os.seteuid(65534)
    try:
        rows = refresh_index(runs)
    finally:
        os.seteuid(0)
    assert [(row.study, row.arm, row.status) for row in rows] == [
        ("half", "arm", "damaged"),
        ("half", "arm", "finished"),
        ("open", "baseline", "finished"),
    ]


class Reads:
    """Which run folders are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        monkeypatch.setattr(index, "run_state", self._read)

    def _read(self, folder: RunFolder) -> Any:
        self.names.append(folder.name)
        return run_state(folder)

    def since(self) -> list[str]:
        found, self.names = self.names, []
        return found


def test_only_runs_that_changed_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [make_run(tmp_path, seed=seed) for seed in range(3)]
    failed = make_run(tmp_path, "failed", 0, None)
    write_sealed(failed.result, {"status": "failed", "reason": "x", "key": "k"})
    make_run(tmp_path, "unfinished", 0, None)
    reads = Reads(monkeypatch)
    rows = refresh_index(tmp_path)
    assert len(reads.since()) == 5
    assert refresh_index(tmp_path) == rows
    assert reads.since() == ["unfinished/seed-0"], "whether it is running is a matter of its lock"
    (tmp_path / NAME).unlink()
    assert refresh_index(tmp_path) == rows, "a deleted index makes no difference"
    assert len(reads.since()) == 5
    folders[1].events.write_text("{}\n")
    damaged = refresh_index(tmp_path)
    assert reads.since() == ["baseline/seed-1", "unfinished/seed-0"]
    assert [row.status for row in damaged] == ["finished", "damaged", "finished", "failed", "interrupted"]
    folders[1].events.unlink()
    assert [(row.status, row.score) for row in refresh_index(tmp_path)] == [(row.status, row.score) for row in rows]


@pytest.mark.parametrize(
    "name", ["plan.json", "result.json", "manifest.json", "card.json", "model/weights", "records/a"]
)
def test_a_change_of_any_file_is_noticed(tmp_path: Path, name: str) -> None:
    folder = make_run(tmp_path, score=None)
    for part in ("card.json", "model/weights", "records/a"):
        (folder.path / part).parent.mkdir(exist_ok=True)
        (folder.path / part).write_text("as it was")
    close_run(folder, "k", {"status": "finished"})
    assert [row.status for row in refresh_index(tmp_path)] == ["finished"]
    before, stat = (folder.path / name).read_bytes(), (folder.path / name).stat()
    (folder.path / name).write_bytes(bytes([before[0] ^ 1]) + before[1:])
    os.utime(folder.path / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert [row.status for row in refresh_index(tmp_path)] == ["damaged"]
    (folder.path / name).write_bytes(before)
    assert [row.status for row in refresh_index(tmp_path)] == ["finished"]
    (folder.path / name).unlink()
    assert [row.status for row in refresh_index(tmp_path)] == ["damaged"]


def test_a_folder_behind_a_link_is_read_each_time(tmp_path: Path) -> None:
    folder, elsewhere = make_run(tmp_path / "runs", score=None), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "weights").write_text("as it was")
    folder.model.symlink_to(elsewhere)
    close_run(folder, "k", {"status": "finished"})
    assert [row.status for row in refresh_index(tmp_path / "runs")] == ["finished"]
    (elsewhere / "weights").write_text("otherwise")
    assert [row.status for row in refresh_index(tmp_path / "runs")] == ["damaged"]


def test_files_of_just_now_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "RACY", 3600.0)
    make_run(tmp_path)
    reads = Reads(monkeypatch)
    assert [row.seal for row in refresh_index(tmp_path)] == [""]
    refresh_index(tmp_path)
    assert reads.since() == ["baseline/seed-0"] * 2


@pytest.mark.parametrize(
    "change", ["score = 0.99", "status = 'failed'", "arm = 'other'", "key = 'other'", "score = 'x'", "reason = x'ff'"]
)
def test_a_row_that_was_changed_is_not_believed(tmp_path: Path, change: str) -> None:
    make_run(tmp_path)
    rows = refresh_index(tmp_path)
    database = sqlite3.connect(tmp_path / NAME)
    with database:
        database.execute(f"UPDATE runs SET {change}")
    database.close()
    assert refresh_index(tmp_path) == rows == stored(tmp_path)


def test_an_index_that_another_process_writes_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "PATIENCE", 0.01)
    make_run(tmp_path)
    rows = refresh_index(tmp_path)
    database = sqlite3.connect(tmp_path / NAME)
    database.execute("BEGIN EXCLUSIVE")
    make_run(tmp_path, seed=1)
    assert [row.seed for row in refresh_index(tmp_path)] == [0, 1]
    database.close()
    assert stored(tmp_path) == rows


def test_one_studys_runs_are_brought_up_to_date_without_the_others(tmp_path: Path) -> None:
    gone = make_run(tmp_path, study="one")
    make_run(tmp_path, study="other")
    both = refresh_index(tmp_path)
    shutil.rmtree(gone.path)
    make_run(tmp_path, "new", study="one")
    assert [(row.study, row.arm) for row in refresh_index(tmp_path, "one")] == [("one", "new")]
    assert [(row.study, row.arm) for row in stored(tmp_path)] == [("one", "new"), ("other", "baseline")]
    assert refresh_index(tmp_path, "other") == both[1:]


def test_a_folder_of_another_spelling_does_not_stand_for_a_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    shutil.copytree(folder.path, folder.path.with_name("seed-00"))
    assert [row.seed for row in refresh_index(tmp_path)] == [row.seed for row in stored(tmp_path)] == [0]


def test_a_runs_folder_of_any_name_is_indexed(tmp_path: Path) -> None:
    runs = tmp_path / "what? 100 % #1"
    make_run(runs)
    rows = refresh_index(runs)
    assert stored(runs) == rows


def test_the_status_of_a_study_is_that_of_its_newest_plans_runs(tmp_path: Path) -> None:
    make_run(tmp_path, seed=0)
    other = make_run(tmp_path, seed=1)
    make_run(tmp_path, "gone", 0)
    other.write_plan({"key": "earlier", "settings": {}, "signature": "sig"})
    damaged = make_run(tmp_path, seed=2)
    damaged.plan.write_text("{")
    planned = [{"arm": "baseline", "seed": seed, "key": "k"} for seed in range(4)]
    write_study(tmp_path / "s", {"plan": "p", "task": {}, "arms": {}, "compare": {}, "runs": planned})
    for _ in range(2):
        found = study_status(tmp_path, "s")
        assert found.metric is None
        expected = [run_state(run_folder(tmp_path, "s", run["arm"], run["seed"]), run["key"]) for run in planned]
        assert [run.status for run in found.runs] == [state.status for state in expected]
        assert [run.status for run in found.runs] == ["finished", "waiting", "damaged", "waiting"]
        assert [run.reason for run in found.runs] == [run_facts(state).reason for state in expected]
    assert planned_status(tmp_path, "s", refresh_index(tmp_path)) == found
    with pytest.raises(LedgerError, match="no study 't'"):
        study_status(tmp_path, "t")
    (tmp_path / "s" / "study.json").write_text("{}")
    with pytest.raises(LedgerError, match=r"study\.json has no seal"):
        study_status(tmp_path, "s")
