"""Finished runs are closed: whatever is changed afterwards excludes the run, by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, write_json, write_sealed
from fairtune.ledger import seals
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.records import write_arrays
from fairtune.ledger.seals import (
    RunState,
    close_run,
    run_state,
)

PLAN = {"key": "k", "settings": {"lr": 1e-5}, "signature": "sig", "arm": "a", "seed": 0}
RESULT = {"status": "finished", "metric": "accuracy", "metrics": {"test": {"accuracy": 1.0}}}


def recorded(runs: Path) -> RunFolder:
    """A run that has recorded everything and is not closed yet."""
    folder = run_folder(runs, "s", "a", 0)
    folder.begin(PLAN)
    write_sealed(folder.environment, {"python": "3.11"})
    write_json(folder.card, {"same": 3})
    log = EventLog(folder.events)
    log.write("step", 0, loss=0.5)
    log.close()
    part = Predictions(tuple("abcd"), np.arange(4) % 2, np.eye(2, dtype=np.float32)[np.arange(4) % 2])
    write_predictions(folder.predictions, {"test": part})
    write_arrays(folder, "map", 3, {"x": np.arange(4.0)})
    folder.model.mkdir()
    (folder.model / "model.safetensors").write_bytes(os.urandom(2000))
    return folder


@pytest.fixture
def closed(tmp_path: Path) -> RunFolder:
    folder = recorded(tmp_path)
    close_run(folder, "k", RESULT)
    folder.clear_scratch()
    assert run_state(folder, "k") == RunState("finished", {**RESULT, "key": "k"}, key="k")
    return folder


SEALED = (
    "plan.json", "environment.json", "card.json", "events.jsonl", "predictions.parquet", "records/map-000000003.safetensors",
    "model/model.safetensors", "result.json", "manifest.json",
)  # fmt: skip


def test_the_manifest_names_every_file_with_its_sum(closed: RunFolder) -> None:
    manifest = read_sealed(closed.manifest)
    assert manifest["key"] == "k"
    assert {*manifest["files"], "manifest.json"} == set(SEALED)
    assert all(len(digest) == 64 for digest in manifest["files"].values())


@pytest.mark.parametrize("name", SEALED)
@pytest.mark.parametrize("fault", ["missing", "changed", "cut", "empty"])
def test_a_changed_or_missing_file_makes_a_run_damaged_and_is_named(closed: RunFolder, name: str, fault: str) -> None:
    file = closed.path / name
    content = file.read_bytes()
    if fault == "missing":
        file.unlink()
    elif fault == "changed":
        place = content.index(b"k") if file.suffix == ".json" and b'"k"' in content else len(content) // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    else:
        file.write_bytes(content[:-7] if fault == "cut" else b"")
    for thorough in (False, True):
        found = run_state(closed, "k", thorough=thorough)
        assert (found.status, found.result) == ("damaged", {}), name
        assert found.problem is not None
        assert name in found.problem


@pytest.mark.parametrize("name", ["model/adapter_config.json", "model/deep/x.bin", "records/map-000000009.safetensors"])
def test_a_file_more_where_all_is_read_is_a_change_too(closed: RunFolder, name: str) -> None:
    (closed.path / name).parent.mkdir(exist_ok=True)
    (closed.path / name).write_text("{}")
    assert run_state(closed).problem == f"{name} is not of this run"


def test_what_readers_leave_beside_a_run_does_not_matter(closed: RunFolder) -> None:
    (closed.path / "maps").mkdir()
    (closed.path / "maps" / "index.html").write_text("drawn later")
    closed.lock.touch()
    assert run_state(closed, thorough=True).status == "finished"


def test_a_run_killed_before_its_result_is_on_the_disk_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = recorded(tmp_path)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(seals, "write_atomically", killed)
    with pytest.raises(KeyboardInterrupt):
        close_run(folder, "k", RESULT)
    monkeypatch.undo()
    assert folder.manifest.exists()
    assert run_state(folder) == RunState("interrupted", key="k")
    folder.begin(PLAN)
    assert not folder.manifest.exists()
    close_run(folder, "k", RESULT)
    assert run_state(folder).status == "finished", "also before its checkpoints are gone"


def test_a_result_taken_away_from_a_closed_run_is_damage_not_an_interruption(closed: RunFolder) -> None:
    closed.result.unlink()
    assert run_state(closed) == RunState("damaged", problem="result.json is missing", key="k")


def test_a_finished_run_cannot_be_made_a_failed_one_or_a_failed_one_finished(closed: RunFolder, tmp_path: Path) -> None:
    write_sealed(closed.result, {"status": "failed", "reason": "x", "key": "k"})
    assert run_state(closed).status == "damaged"
    failed = run_folder(tmp_path, "s", "a", 1)
    failed.begin(PLAN)
    write_sealed(failed.result, {"status": "failed", "reason": "x", "key": "k"})
    assert run_state(failed).status == "failed"
    write_sealed(failed.result, {**RESULT, "key": "k"})
    assert "manifest.json is missing" in str(run_state(failed).problem)


@pytest.mark.parametrize("file", ["plan.json", "result.json", "manifest.json"])
def test_files_of_another_run_do_not_pass_for_this_ones(closed: RunFolder, tmp_path: Path, file: str) -> None:
    other = recorded(tmp_path / "other")
    write_sealed(other.plan, {**PLAN, "key": "z"})
    close_run(other, "z", RESULT)
    shutil.copy(other.path / file, closed.path / file)
    assert run_state(closed).status == "damaged"
    assert run_state(closed, "k").status == ("waiting" if file == "plan.json" else "damaged")


def test_a_touched_or_copied_run_is_sound_and_reading_leaves_it_as_it_is(closed: RunFolder, tmp_path: Path) -> None:
    copy = RunFolder(tmp_path / "copy" / "seed-0")
    shutil.copytree(closed.path, copy.path)
    for file in (copy.predictions, copy.model / "model.safetensors"):
        os.utime(file, (1, 1))
    before = {p: p.stat().st_mtime_ns for p in copy.path.rglob("*")}
    assert run_state(copy) == run_state(closed)
    assert {p: p.stat().st_mtime_ns for p in copy.path.rglob("*")} == before


def test_what_was_read_once_is_not_read_again(
    closed: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = RunFolder(tmp_path / "copy" / "seed-0")
    shutil.copytree(closed.path, copy.path)
    assert run_state(copy, remember=True).status == "finished"
    read: list[Path] = []
    monkeypatch.setattr(seals, "sha256_of", lambda path: read.append(path) or "")
    for folder in (closed, copy):
        assert run_state(folder).status == "finished"
    assert read == [], "neither where it was made nor where it was copied to"
    assert run_state(closed, thorough=True).status == "damaged"
    assert read, "unless everything is asked for"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"events.jsonl": 3, "result.json": [1, 2]}'])
def test_what_is_remembered_of_a_run_may_be_damaged(closed: RunFolder, content: bytes) -> None:
    whole = run_state(closed)
    (closed.path / seals.CHECKED).write_bytes(content)
    assert run_state(closed) == whole
    closed.predictions.write_bytes(b"")
    assert run_state(closed).status == "damaged"


def test_a_file_changed_and_dated_back_is_noticed(closed: RunFolder) -> None:
    stat = closed.predictions.stat()
    content = bytearray(closed.predictions.read_bytes())
    content[20] ^= 1
    closed.predictions.write_bytes(content)
    os.utime(closed.predictions, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert run_state(closed).status == "damaged"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b'{"key": "k"}', b"[" * 100_000])
def test_a_run_whose_plan_cannot_be_read_is_refused_with_the_way_out(closed: RunFolder, content: bytes | None) -> None:
    closed.plan.unlink() if content is None else closed.plan.write_bytes(content)
    assert run_state(closed).status == "damaged"
    with pytest.raises(LedgerError, match=r"plan\.json .*nothing says what was trained.*Move this folder away"):
        closed.check_plan(PLAN)


@pytest.mark.parametrize("trace", ["checkpoint", "model"])
def test_an_unfinished_run_without_its_plan_is_refused_too(tmp_path: Path, trace: str) -> None:
    folder = run_folder(tmp_path, "s", "a", 0)
    (folder.path / trace / "step-1").mkdir(parents=True)
    with pytest.raises(LedgerError, match=rf"plan\.json is missing, but {trace} is there"):
        folder.check_plan(PLAN)
