"""`export`: what it writes loads in transformers or PEFT and answers as the run did; a sentence for each mistake."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.execution.conftest import perform_here
from tests.execution.made_runs import SEED, make_run, study_of
from tests.sealed import close_again
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.files import read_sealed, write_sealed
from fairtune.execution.study_files import record_plan
from fairtune.export import _name_checkpoint, export_model
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import read_predictions
from fairtune.settings.file_task import FileTask
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.tasks import load_task

NAME = f"toy/oelm-freeze/seed-{SEED}"
LORA = {"peft": {"type": "lora", "r": 4, "target_modules": ["query", "value"]}}
PISSA = {"peft": {**LORA["peft"], "init_lora_weights": "pissa"}}
PROMPT = {"peft": {"type": "prompt_tuning", "num_virtual_tokens": 3}}
ARMS: dict[str, tuple[list[Any], bool]] = {
    "baseline": ([], False),
    "frozen": (["orthogonal_qk"], False),
    "lora": ([LORA], True),
    "focal-lora": (["focal", LORA], True),
    "pissa": ([PISSA], True),
    "prompts": ([PROMPT], True),
    "frozen-lora": (["orthogonal_qk", {"peft": {"target_modules": ["value"]}}], False),
}
"""Each arm's methods, and whether its adapter and the checkpoint make its model."""


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


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; from fairtune.cli.app import app\n"
        "try: app(['export', '--help'])\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    done = light_run([sys.executable, "-c", code], text=True, timeout=60)
    assert done.stdout.strip().endswith("False"), done.stderr


@pytest.mark.parametrize("arm", ARMS)
def test_what_is_exported_loads_as_it_says_and_answers_as_the_run(
    arm: str, tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    methods, is_adapter = ARMS[arm]
    if "peft" in str(methods):
        pytest.importorskip("peft")
    from transformers import AutoTokenizer

    source = study_of(tiny_model, tiny_task, {arm: methods})
    plan = make_plan(load_study(source))
    record_plan(plan, tmp_path / "runs" / "toy")
    job = plan.runs[0].at(tmp_path / "runs")
    assert perform_here(job)["status"] == "finished"

    done = export_model(f"toy/{arm}/seed-{SEED}", tmp_path / "out", tmp_path / "runs")
    assert done.adapter == is_adapter == (tmp_path / "out" / "adapter_model.safetensors").is_file()
    assert is_adapter != (tmp_path / "out" / "model.safetensors").is_file()
    loaded: dict[str, Any] = {}
    exec("\n".join(done.loading), loaded)  # the lines that are shown to the user
    model, tokenizer = loaded["model"].eval(), AutoTokenizer.from_pretrained(tmp_path / "out")
    recorded = read_predictions(job.run.predictions, "test")
    rows = load_task(FileTask.model_validate(source["task"])).splits["test"]
    texts = dict(zip(rows.ids, rows.texts, strict=True))
    batch = tokenizer([texts[row][0] for row in recorded.ids], padding=True, return_tensors="pt")
    with torch.inference_mode():
        scores = model(**batch).logits.numpy()
    assert np.allclose(scores, recorded.scores, atol=1e-5), np.abs(scores - recorded.scores).max()
    assert model.config.id2label == {0: "neg", 1: "pos"}


def test_an_adapter_names_its_checkpoint_on_the_hub_and_no_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "/home/me/cache", "r": 4}))
    (tmp_path / "README.md").write_text("base_model: /home/me/cache")
    _name_checkpoint(tmp_path, {"hub_id": "google-bert/bert-base-uncased", "revision": "a" * 40})
    assert [path.name for path in tmp_path.iterdir()] == ["adapter_config.json"]
    assert json.loads((tmp_path / "adapter_config.json").read_text()) == {
        "base_model_name_or_path": "google-bert/bert-base-uncased",
        "revision": "a" * 40,
        "r": 4,
    }


def test_a_whole_model_is_a_copy(run: RunFolder) -> None:
    Path("empty").mkdir()
    answer = json.loads(call("export", NAME, "empty", "--json").stdout)
    assert (answer["run"], answer["out"], answer["adapter"]) == (NAME, "empty", False)
    copied = {p.name: p.read_bytes() for p in Path("empty").iterdir()}
    assert copied == {p.name: p.read_bytes() for p in run.model.iterdir()}
    assert answer["model_bytes"] == sum(map(len, copied.values()))
    shutil.move("runs", "elsewhere")
    shown = call("export", NAME, "new/copy", "--runs", "elsewhere")
    assert "model = AutoModelForSequenceClassification.from_pretrained('new/copy')" in shown.output


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
    assert expected in refused("export", name, "new")


def test_no_runs_at_all(tmp_path: Path) -> None:
    assert "holds no run" in refused("export", "toy/arm/seed-0", tmp_path / "new", "--runs", tmp_path)


def test_a_run_that_has_not_finished(run: RunFolder) -> None:
    plan = read_sealed(run.plan)
    run.begin(plan)
    assert f"run {NAME} has not finished: it is interrupted" in refused("export", NAME, "new")
    write_sealed(run.result, {"status": "failed", "reason": "the loss is nan", "key": plan["key"]})
    assert "it is failed (the loss is nan)" in refused("export", NAME, "new")


def test_a_run_that_kept_no_model(run: RunFolder) -> None:
    shutil.rmtree(run.model)
    close_again(run)
    assert "kept no model (execution.save_model was false)" in refused("export", NAME, "new")


def test_a_run_that_was_changed_after_it_was_closed(run: RunFolder) -> None:
    weights = run.model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "model/model.safetensors was changed after the run was closed" in refused("export", NAME, "new")
    run.plan.write_text("{")
    assert "plan.json is not readable JSON" in refused("export", NAME, "new")
    assert not Path("new").exists()


@pytest.mark.usefixtures("run")
def test_a_place_that_is_taken_stays_as_it_is() -> None:
    Path("there").mkdir()
    Path("there/mine").write_text("mine")
    answer = json.loads(CliRunner().invoke(app, ["export", NAME, "there", "--json"]).stdout)
    assert "there exists already" in answer["error"]
    assert "there/mine exists already" in refused("export", NAME, "there/mine")
    assert "there/mine/below cannot be written" in refused("export", NAME, "there/mine/below")
    assert Path("there/mine").read_text() == "mine"


@pytest.mark.usefixtures("run")
def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    assert "new cannot be written (No space left on device)" in refused("export", NAME, "new")
    assert [path.name for path in Path().iterdir()] == ["runs"]
