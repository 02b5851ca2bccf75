"""`export` and `restore`: there and back from the command line, and a sentence for each mistake."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.execution.made_runs import SEED, make_run
from tests.sealed import close_again
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.folders import RunFolder

NAME = f"toy/oelm-freeze/seed-{SEED}"


@pytest.fixture
def run(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.chdir(tmp_path)
    return make_run(Path("runs"), tiny_model, tiny_task, ["orthogonal_qk"], arm="oelm-freeze")


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(*words: object) -> str:
    """What is said about a mistake."""
    answer = call(*words)
    assert answer.exit_code == 2, answer.output
    assert "Traceback" not in answer.output
    assert answer.exception is None or isinstance(answer.exception, SystemExit)
    return " ".join(answer.output.split())


def weights(folder: Path | str) -> bytes:
    return (Path(folder) / "model.safetensors").read_bytes()


@pytest.mark.parametrize("verb", ["export", "restore"])
def test_help_does_not_import_torch(verb: str) -> None:
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app([{verb!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60)
    assert done.stdout.strip().endswith("False"), done.stderr


def test_there_and_back(run: RunFolder, tiny_model: Path) -> None:
    shown = call("export", NAME, "--delta")
    assert shown.exit_code == 0, shown.output
    folder = f"toy-oelm-freeze-seed-{SEED}-delta"
    assert "whole model  0.10 MB, 41 tensors" in shown.output
    assert "33 tensors and the recipe" in shown.output
    assert f"fairtune restore {folder} --out FOLDER" in shown.output
    back = call("restore", folder, "--out", "back", "--model", tiny_model)
    assert back.exit_code == 0, back.output
    assert "41 tensors, each bit-equal to the run's" in back.output
    assert weights("back") == weights(run.model)


def test_there_and_back_in_json(run: RunFolder, tiny_model: Path) -> None:
    answer = json.loads(call("export", run.path, "--delta", "--out", "new/delta", "--json").stdout)
    assert answer["run"] == NAME
    assert answer["share"] == answer["delta_bytes"] / answer["model_bytes"]
    assert answer["delta_bytes"] == sum(path.stat().st_size for path in Path("new/delta").iterdir())
    assert (answer["stored"], answer["tensors"], answer["rebuilt_otherwise"]) == (33, 41, [])
    back = json.loads(call("restore", "new/delta", "--out", "back", "--model", tiny_model, "--json").stdout)
    assert (back["tensors"], back["stored"], back["out"]) == (41, 33, "back")


def test_a_whole_model_is_a_copy(run: RunFolder) -> None:
    answer = json.loads(call("export", NAME, "--json").stdout)
    assert answer["out"] == f"toy-oelm-freeze-seed-{SEED}-model"
    assert {p.name: p.read_bytes() for p in Path(answer["out"]).iterdir()} == {
        p.name: p.read_bytes() for p in run.model.iterdir()
    }
    assert "MB in copy" in call("export", NAME, "--out", "copy").output


def test_runs_are_found_in_another_folder(run: RunFolder) -> None:
    shutil.move("runs", "elsewhere")
    assert not run.path.exists()
    assert call("export", NAME, "--runs", "elsewhere", "--out", "copy").exit_code == 0


def test_a_run_taken_away_from_its_study_needs_to_be_told_its_checkpoint(run: RunFolder, tiny_model: Path) -> None:
    shutil.copytree(run.path, "taken")
    assert "'tiny-bert' is not here; give its folder with --model" in refused("export", "taken", "--delta")
    assert call("export", "taken", "--delta", "--out", "delta", "--model", tiny_model).exit_code == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"toy/oelm-frezee/seed-{SEED}", f"Did you mean '{NAME}'?"),
        (f"runs/toy/oelm-freeze/seed{SEED}", f"Did you mean '{NAME}'?"),
        ("runs/toy", f"is not a run; runs in runs: {NAME}."),
        ("pyproject.toml", f"is not a run; runs in runs: {NAME}."),
    ],
)
@pytest.mark.usefixtures("run")
def test_a_run_that_is_not_there(name: str, expected: str) -> None:
    assert expected in refused("export", name, "--delta")


def test_no_runs_at_all(tmp_path: Path) -> None:
    assert "holds no run" in refused("export", "toy/arm/seed-0", "--runs", tmp_path)


def test_a_run_that_has_not_finished(run: RunFolder) -> None:
    plan = read_sealed(run.plan)
    run.begin(plan)
    assert f"run {NAME} has not finished: it is interrupted" in refused("export", NAME)
    write_sealed(run.result, {"status": "failed", "reason": "the loss is nan", "key": plan["key"]})
    assert "it is failed (the loss is nan)" in refused("export", NAME, "--delta")


def test_a_run_that_kept_no_model(run: RunFolder) -> None:
    shutil.rmtree(run.model)
    close_again(run)
    for words in ((), ("--delta",)):
        assert "kept no model (execution.save_model was false)" in refused("export", NAME, *words)


def test_a_run_with_a_damaged_plan(run: RunFolder) -> None:
    run.plan.write_text("{")
    assert "plan.json is not readable JSON" in refused("export", NAME)


@pytest.mark.usefixtures("run")
def test_a_checkpoint_is_asked_for_a_delta_only(tiny_model: Path) -> None:
    assert "Add --delta" in refused("export", NAME, "--model", tiny_model)


@pytest.mark.usefixtures("run")
def test_a_mistake_in_json() -> None:
    Path("there").mkdir()
    answer = json.loads(CliRunner().invoke(app, ["export", NAME, "--out", "there", "--json"]).stdout)
    assert "there exists already" in answer["error"]


def test_a_folder_that_is_no_delta(tmp_path: Path) -> None:
    assert "is not a delta: it has no recipe.json" in refused("restore", tmp_path, "--out", tmp_path / "back")
