"""`fairtune verify`, and what `status`, `report`, `run` and `export` make of a ledger that was changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import drawing_nothing, performing_here
from tests.sealed import close_again
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.folders import RunFolder

pytestmark = pytest.mark.usefixtures("undrawn")


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def finished(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study file and its runs, two arms and two seeds, really trained."""
    place = tmp_path_factory.mktemp("finished")
    source = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"steps": 3, "batch_size": 8, "max_length": 16},
        "seeds": 2,
        "arms": {"baseline": {}, "fast": {"lr": 1e-3}},
        "execution": {"devices": "cpu"},
    }
    (place / "toy.yaml").write_text(yaml.safe_dump(source, sort_keys=False))
    with performing_here(), drawing_nothing():
        done = call("run", place / "toy.yaml", "--runs", place / "runs")
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def place(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it that a test may damage, with a cache of its own."""
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "copy"


def run_of(place: Path, arm: str = "baseline", seed: int = 0) -> RunFolder:
    return RunFolder(place / "runs" / "toy" / arm / f"seed-{seed}")


def flip(file: Path, place: int = -3) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_a_sound_ledger_is_said_to_be_sound_and_left_as_it_is(place: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    for words in ((), ("toy",)):
        answer = call("verify", *words)
        assert answer.exit_code == 0, answer.output
        assert "Everything that was closed is as it was closed." in answer.output
    found = json.loads(call("verify", "--json").stdout)
    assert found["sound"] is True
    assert found["studies"][0]["runs"] == {"finished": 4}
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_a_record_of_a_suite_that_was_changed_is_named(place: Path) -> None:
    from fairtune.ledger.studies import record_suite, suite_folder

    runs = place / "runs"
    record_suite(runs, "mine", [{"study": "toy", "task": "toy", "model": "tiny", "metric": "accuracy"}])
    assert json.loads(call("verify", "--json").stdout)["suites"] == []
    flip(suite_folder(runs, "mine") / "history.json", 120)
    found = call("verify")
    assert found.exit_code == 1
    assert "mine/history.json" in found.output
    assert call("verify", "toy").exit_code == 0, "it is none of the study's"


@pytest.mark.parametrize(
    "name",
    [
        "plan.json", "environment.json", "card.json", "events.jsonl", "predictions.parquet", "result.json", "manifest.json",
        "model/model.safetensors", "model/config.json", "records/representation-000000003.safetensors",
    ],
)  # fmt: skip
def test_a_flipped_bit_leaves_the_run_out_everywhere_by_name(place: Path, name: str) -> None:
    run = run_of(place)
    if not (run.path / name).exists():
        name = next(p.relative_to(run.path).as_posix() for p in sorted(run.records.iterdir()))
    flip(run.path / name)
    answer = call("verify")
    assert answer.exit_code == 1
    assert f"{run.path.relative_to(place)}: {name}" in answer.output
    states = {(r["arm"], r["seed"]): r for r in json.loads(call("status", "toy", "--json").stdout)["runs"]}
    assert states["baseline", 0]["status"] == "damaged"
    assert name in states["baseline", 0]["reason"]
    assert sorted(r["status"] for r in states.values()) == ["damaged", "finished", "finished", "finished"]
    refused = call("export", "toy/baseline/seed-0", "out")
    assert refused.exit_code == 2
    assert name in refused.output
    assert not Path("out").exists()


@pytest.mark.usefixtures("performed_here")
def test_the_report_leaves_a_damaged_run_out_and_says_so(place: Path) -> None:
    flip(run_of(place).predictions, 50)
    report = call("report", "toy")
    assert report.exit_code == 0, report.output
    assert "baseline/seed-0: predictions.parquet was changed after the run was closed" in " ".join(
        report.output.split()
    )
    for kind in ("index.html", "report.md", "report.json"):
        assert (
            "predictions.parquet was changed after the run was closed" in (place / "runs/toy/report" / kind).read_text()
        )
    again = call("run", "toy.yaml")
    assert again.exit_code == 1
    assert "baseline/seed-0 is damaged: predictions.parquet was changed" in again.output
    shutil.move(run_of(place).path, place / "aside")
    assert call("run", "toy.yaml").exit_code == 0, "the way out that the message names"
    assert call("verify").exit_code == 0


def test_scores_that_do_not_follow_from_the_predictions_are_reported(place: Path) -> None:
    close_again(run_of(place), metrics={"test": {"accuracy": 0.99}})
    answer = call("verify", "toy")
    assert answer.exit_code == 1
    assert "result.json says accuracy is 0.99 on test, its predictions say 0." in answer.output


def test_other_settings_under_the_same_key_are_reported(place: Path) -> None:
    run = run_of(place)
    plan = read_sealed(run.plan)
    plan["settings"]["train"]["lr"] = 0.003
    write_sealed(run.plan, plan)
    close_again(run)
    assert "plan.json has other settings than the study's plan" in call("verify").output


@pytest.mark.parametrize("name", ["study.json", "data.json", "examples.parquet", "plans"])
def test_files_of_the_study_are_checked_too(place: Path, name: str) -> None:
    home = place / "runs" / "toy"
    file = next((home / "plans").iterdir()) if name == "plans" else home / name
    flip(file, 200)
    answer = call("verify")
    assert answer.exit_code == 1
    assert f"not sound: {file.relative_to(place)}" in answer.output
    assert call("run", "toy.yaml").exit_code == 0
    if name != "plans":
        assert call("verify").exit_code == 0, "running the study again rewrites it"


def test_one_study_that_cannot_be_read_does_not_hide_the_others(place: Path) -> None:
    for content in ("{}", "{", "[]", '{"runs": []}'):
        shutil.copytree(place / "runs" / "toy", place / "runs" / "other", dirs_exist_ok=True)
        (place / "runs" / "other" / "study.json").write_text(content)
        answer = call("status")
        assert answer.exit_code == 0, answer.output
        assert "toy" in answer.output
        assert "other: cannot be read: runs/other/study.json" in answer.output
        found = json.loads(call("status", "--json").stdout)
        assert found["studies"]["toy"]["finished"] == 4
        assert "other" in found["problems"]
        assert call("verify").exit_code == 1
        refused = call("report", "other")
        assert refused.exit_code == 2
        assert "run the study again to rewrite it" in refused.output


def test_wrong_input(place: Path) -> None:
    assert "no study 'x'" in call("verify", "x").output
    assert call("verify", "x").exit_code == 2
    assert "cannot be read (Not a directory)" in call("verify", "--runs", "toy.yaml").output
    assert "cannot be read (Not a directory)" in call("status", "--runs", "toy.yaml").output
    empty = call("verify", "--runs", place / "none")
    assert (empty.exit_code, "No study in" in empty.output) == (0, True)
