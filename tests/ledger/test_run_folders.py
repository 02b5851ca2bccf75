"""Run folders: their state, and what protects them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import write_sealed
from fairtune.core.locks import is_locked
from fairtune.ledger.folders import lock, require_study, require_writable, run_folder, run_folders, study_names
from fairtune.ledger.seals import RunState, close_run, run_state
from fairtune.ledger.studies import write_study


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
    assert run_state(folder) == RunState("interrupted", key="k")
    with lock(folder.lock, "taken"):
        assert run_state(folder) == RunState("running", key="k")
    failed = {"status": "failed", "reason": "x", "key": "k"}
    write_sealed(folder.result, failed)
    assert run_state(folder) == RunState("failed", failed, key="k")
    folder.begin({"key": "k"})
    close_run(folder, "k", {"status": "finished"})
    assert (
        run_state(folder) == run_state(folder, "k") == RunState("finished", {"status": "finished", "key": "k"}, key="k")
    )
    assert run_state(folder, "other") == RunState("waiting", key="k"), "a run of another plan is none of this one"


SETTINGS = {"train": {"lr": 1e-4, "epochs": 3}, "task": {"name": "t"}, "methods": []}


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


def test_an_unknown_study_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no study 'x' .* holds no study yet.*fairtune run"):
        require_study(tmp_path / "none", "x")
    make_run(tmp_path, study="movies")
    (tmp_path / "not-a-study").mkdir()
    assert study_names(tmp_path) == ["movies"]
    with pytest.raises(LedgerError, match=r"studies there: movies\. Did you mean 'movies'"):
        require_study(tmp_path, "movie")
    assert require_study(tmp_path, "movies") == tmp_path / "movies"


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "runs"):
        with pytest.raises(LedgerError) as caught:
            require_writable(path)
        assert f"the runs folder {path} cannot be written" in str(caught.value)
        assert "--runs" in str(caught.value)


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


def test_a_folder_moved_aside_is_no_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    make_run(tmp_path, seed=1)
    folder.path.rename(folder.path.with_name("seed-0-old"))
    assert [f.seed for f in run_folders(tmp_path / "s")] == [1]


@pytest.mark.parametrize("kind", ["folder", "below a file"])
def test_a_lock_that_cannot_be_opened_is_reported_and_is_not_held(tmp_path: Path, kind: str) -> None:
    file = tmp_path / ".lock"
    if kind == "folder":
        file.mkdir()
    else:
        (tmp_path / "file").touch()
        file = tmp_path / "file" / ".lock"
    assert not is_locked(file)
    with pytest.raises(LedgerError, match=r"\.lock: the lock cannot be opened \("), lock(file, "taken"):
        pytest.fail("there is no lock")


def test_a_runs_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(LedgerError, match=r"the runs folder .*runs cannot be read \(Not a directory\); choose another"):
        study_names(tmp_path / "runs")
