"""Run folders: their state, what protects them, and the index made of them."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_sealed
from fairtune.core.locks import is_locked
from fairtune.ledger.folders import lock
from fairtune.ledger.index import NAME, read_index, refresh_index
from fairtune.ledger.seals import RunState, close_run, run_state
from fairtune.ledger.studies import (
    require_study,
    require_writable,
    run_folder,
    run_folders,
    study_names,
    write_study,
)


def make_run(runs: Path, arm: str = "baseline", seed: int = 0, score: float | None = 0.8, study: str = "s") -> Any:
    write_study(runs / study, {"study": study, "plan": "p"})
    folder = run_folder(runs, study, arm, seed)
    folder.write_plan({"key": "k", "settings": {}, "signature": "sig"})
    if score is not None:
        result = {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": score}}}
        close_run(folder, "k", {**result, "seconds": {"total": 3.5}, "signature": "sig"})
    return folder


def test_a_folder_says_what_state_its_run_is_in(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "s", "baseline", 3)
    assert (folder.path, folder.arm, folder.seed) == (tmp_path / "s" / "baseline" / "seed-3", "baseline", 3)
    assert run_state(folder) == RunState("waiting")
    folder.begin({"key": "k"})
    assert run_state(folder) == RunState("interrupted")
    with lock(folder.lock, "taken"):
        assert run_state(folder) == RunState("running")
    failed = {"status": "failed", "reason": "x", "key": "k"}
    write_sealed(folder.result, failed)
    assert run_state(folder) == RunState("failed", failed)
    folder.begin({"key": "k"})
    close_run(folder, "k", {"status": "finished"})
    assert run_state(folder) == run_state(folder, "k") == RunState("finished", {"status": "finished", "key": "k"})
    assert run_state(folder, "other") == RunState("waiting"), "a run of another plan is none of this one"


SETTINGS = {"train": {"lr": 1e-4, "epochs": 3}, "task": {"name": "t"}, "methods": []}


def test_a_folder_of_the_same_plan_is_accepted(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "s", "a", 0)
    folder.check_plan({"key": "1", "settings": SETTINGS})
    folder.write_plan({"key": "1", "settings": SETTINGS})
    folder.check_plan({"key": "1", "settings": SETTINGS})


def test_a_folder_of_another_plan_is_refused_naming_what_differs(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "s", "a", 0)
    folder.write_plan({"key": "1", "settings": SETTINGS})
    before = folder.plan.read_bytes()
    other = {"train": {"lr": 2e-5, "epochs": 3}, "task": {"name": "t"}, "methods": [{"orthogonal_qk": {}}]}
    with pytest.raises(LedgerError) as caught:
        folder.check_plan({"key": "2", "settings": other})
    message = str(caught.value)
    assert str(folder.path) in message
    assert "train.lr was 0.0001, is 2e-05" in message
    assert "methods was [], is [{'orthogonal_qk': {}}]" in message
    assert "epochs" not in message
    assert "--runs" in message
    assert folder.plan.read_bytes() == before


def test_a_plan_without_settings_is_refused_too(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "s", "a", 0)
    folder.write_plan({"key": "1"})
    with pytest.raises(LedgerError, match="another plan"):
        folder.check_plan({"key": "2", "settings": SETTINGS})


def test_scratch_is_cleared_and_the_record_stays(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    (folder.checkpoint / "step-1").mkdir(parents=True)
    folder.clear_scratch()
    folder.clear_scratch()
    assert not folder.checkpoint.exists()
    assert run_state(folder).status == "finished"


def test_an_unknown_study_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no study 'x' .* holds no study yet.*fairtune run"):
        require_study(tmp_path / "none", "x")
    make_run(tmp_path, study="movies")
    (tmp_path / "not-a-study").mkdir()
    assert study_names(tmp_path) == ["movies"]
    with pytest.raises(LedgerError, match=r"studies there: movies\. Did you mean 'movies'"):
        require_study(tmp_path, "movie")
    assert require_study(tmp_path, "movies") == tmp_path / "movies"


def test_a_writable_folder_is_made_and_left_clean(tmp_path: Path) -> None:
    require_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(LedgerError) as caught:
            require_writable(path)
        assert f"the runs folder {path} cannot be written" in str(caught.value)
        assert "--runs" in str(caught.value)


@pytest.mark.parametrize("path", ["/proc/fairtune-runs", "/sys/fairtune-runs", "/proc", "/sys/kernel"])
def test_a_read_only_place_cannot_be_written(path: str) -> None:
    if not Path(path).parent.is_dir() or not Path("/sys/kernel").is_dir():
        pytest.skip("no such place here")
    with pytest.raises(LedgerError, match=r"cannot be written \(.+\); choose another with --runs"):
        require_writable(Path(path))


HOLDER = """
import sys, time
from pathlib import Path
from fairtune.ledger.folders import lock
with lock(Path(sys.argv[1]), "taken"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_exclusive_between_processes_and_ends_with_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "deep" / ".lock"
    assert not is_locked(file)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "held\n"
            assert is_locked(file)
            with (
                pytest.raises(LedgerError, match=r"^somebody else works here$"),
                lock(file, "somebody else works here"),
            ):
                pytest.fail("the lock was given twice")
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not is_locked(file)
    with lock(file, "taken"):
        assert is_locked(file)
    assert not is_locked(file)


ASKER = """
import sys
from pathlib import Path
from fairtune.core.locks import is_locked
print("asking", flush=True)
while True:
    is_locked(Path(sys.argv[1]))
"""


def test_asking_whether_a_lock_is_held_never_turns_a_run_away(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    file.touch()
    with subprocess.Popen([sys.executable, "-c", ASKER, str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            for _ in range(2000):
                with lock(file, "taken"):
                    pass
        finally:
            process.kill()


def test_the_index_has_a_row_a_run(tmp_path: Path) -> None:
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
    assert read_index(tmp_path) == sorted(rows.values(), key=lambda r: (r.study, r.arm, r.seed))


def test_a_run_that_holds_its_lock_is_running(tmp_path: Path) -> None:
    folder = make_run(tmp_path, score=None)
    with lock(folder.path / ".lock", "taken"):
        assert refresh_index(tmp_path)[0].status == "running"
    assert refresh_index(tmp_path)[0].status == "interrupted"


@pytest.mark.parametrize("fault", ["deleted", "garbage", "empty", "other table", "folder"])
def test_a_lost_or_damaged_index_is_rebuilt(tmp_path: Path, fault: str) -> None:
    make_run(tmp_path)
    rows = refresh_index(tmp_path)
    index = tmp_path / NAME
    index.unlink()
    if fault == "garbage":
        index.write_bytes(os.urandom(5000))
    elif fault == "empty":
        index.touch()
    elif fault == "other table":
        database = sqlite3.connect(index)
        database.execute("CREATE TABLE runs (something)")
        database.commit()
        database.close()
    elif fault == "folder":
        index.mkdir()
    assert read_index(tmp_path) == rows
    assert refresh_index(tmp_path) == rows
    if fault != "folder":
        database = sqlite3.connect(index)
        assert database.execute("SELECT count(*), max(score) FROM runs").fetchone() == (1, 0.8)
        database.close()


def test_an_index_that_cannot_be_written_does_not_stand_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path)
    monkeypatch.setattr("fairtune.ledger.index.NAME", "../../../../../proc/nowhere/index.sqlite")
    assert [row.score for row in refresh_index(tmp_path)] == [0.8]
    assert [row.score for row in read_index(tmp_path)] == [0.8]


def test_the_index_forgets_runs_that_are_gone_and_no_runs_is_no_rows(tmp_path: Path) -> None:
    assert refresh_index(tmp_path / "none") == []
    folder = make_run(tmp_path)
    make_run(tmp_path, "other")
    assert len(refresh_index(tmp_path)) == 2
    shutil.rmtree(folder.path)
    refresh_index(tmp_path)
    assert [row.arm for row in read_index(tmp_path)] == ["other"]


def test_a_folder_moved_aside_is_no_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    make_run(tmp_path, seed=1)
    folder.path.rename(folder.path.with_name("seed-0-old"))
    assert [row.seed for row in refresh_index(tmp_path)] == [1]
    assert [f.seed for f in run_folders(tmp_path / "s")] == [1]


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
    assert {row.arm for row in read_index(tmp_path)} == {"baseline", "strange"}


def test_a_folder_with_a_number_that_no_index_holds_does_not_stop_the_others(tmp_path: Path) -> None:
    make_run(tmp_path)
    for seed in (2**63, 2**64, 10**200):
        make_run(tmp_path, seed=seed)
    assert [row.seed for row in refresh_index(tmp_path)] == [0]
    assert [row.seed for row in read_index(tmp_path)] == [0]
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


@pytest.mark.parametrize("kind", ["folder", "below a file"])
def test_a_lock_that_cannot_be_opened_is_told_and_is_not_held(tmp_path: Path, kind: str) -> None:
    file = tmp_path / ".lock"
    if kind == "folder":
        file.mkdir()
    else:
        (tmp_path / "file").touch()
        file = tmp_path / "file" / ".lock"
    assert not is_locked(file)
    with pytest.raises(LedgerError, match=r"\.lock: the lock cannot be opened \("), lock(file, "taken"):
        pytest.fail("there is no lock")


def test_a_runs_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(LedgerError, match=r"the runs folder .*runs cannot be read \(Not a directory\); choose another"):
        study_names(tmp_path / "runs")
