"""The command line: quick answers, JSON on every verb that answers with data, one clear sentence for a mistake."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.warm import light_run
from typer.testing import CliRunner

from fairtune.cli.app import app


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "toy.yaml"
    source = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "train": {"epochs": 1, "batch_size": 16, "max_length": 32},
        "seeds": 2,
        "arms": {"baseline": {}, "oelm": {"lr": 1e-3, "methods": ["orthogonal_qk"]}},
        "execution": {"devices": "cpu"},
        "profiles": {"short": {"train": {"steps": 2}}},
    }
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    "words", [["--help"], ["run", "--help"], ["schema"], ["validate", "{study}"], ["plan", "{study}"]]
)
def test_quick_verbs_do_not_import_torch(study: Path, tmp_path: Path, words: list[str]) -> None:
    """Nor with an empty cache, in which no other test has left what would have to be counted."""
    slow = [
        "torch",
        "transformers",
        "matplotlib",
        *(["scipy"] if words[0] != "plan" else []),
    ]  # power on paper takes it
    words = [word.format(study=study) for word in words]
    code = (
        "import sys; from fairtune.cli.app import app\n"
        f"try: app({words!r})\n"
        "except SystemExit: pass\n"
        f"print([m for m in {slow!r} if m in sys.modules])"
    )
    own = {**os.environ, "FAIRTUNE_CACHE": str(tmp_path / "cache")}
    done = light_run([sys.executable, "-c", code], text=True, timeout=60, env=own)
    assert done.stdout.strip().endswith("[]"), done.stdout[-300:] + done.stderr


def test_validate_answers_with_exit_code_0_or_2(study: Path) -> None:
    good = call("validate", study)
    assert good.exit_code == 0
    assert "2 arms x 2 seeds = 4 runs" in good.output
    assert json.loads(call("validate", study, "--json").output)["profiles"] == ["short"]
    study.write_text(study.read_text().replace("epochs", "epoch"))
    bad = call("validate", study)
    assert bad.exit_code == 2
    assert re.search(r"toy\.yaml:\d+: train\.epoch: unknown key.*Did you mean 'epochs'", bad.output)
    answer = json.loads(CliRunner().invoke(app, ["validate", str(study), "--json"]).stdout)
    assert answer["problems"][0]["path"] == "train.epoch"


def test_a_mistake_in_a_profile_is_found_too(study: Path) -> None:
    study.write_text(study.read_text().replace("steps: 2", "steps: none"))
    bad = call("validate", study)
    assert bad.exit_code == 2
    assert "profile short: train.steps" in bad.output


def test_plan_shows_order_and_audit(study: Path) -> None:
    shown = call("plan", study).output
    rows = re.findall(r"^ +\d+ +\d +(\w+) +(\d)", shown, re.MULTILINE)
    assert rows == [("baseline", "0"), ("oelm", "0"), ("oelm", "1"), ("baseline", "1")]
    assert "oelm: lr is 0.001, baseline has 2e-05" in shown
    answer = json.loads(call("plan", study, "--profile", "short", "--json").output)
    assert {run["steps"] for run in answer["runs"]} == {2}
    assert answer["differences"][0]["setting"] == "lr"


def test_plan_says_what_to_know_before_the_first_run(study: Path) -> None:
    shown = " ".join(call("plan", study).stdout.split())
    assert "Warning: seeds: 2 per arm: one run gives no verdict" in shown
    assert "Add the arm `baseline-lr-1e-3: {lr: 0.001}`" in shown
    answer = json.loads(call("plan", study, "--json").stdout)
    assert {caution["code"] for caution in answer["cautions"]} >= {"few-seeds", "no-control"}
    assert answer["arms"]["oelm"]["primary"] == "baseline"


def test_a_plan_that_is_refused_can_be_forced(study: Path) -> None:
    words = ["plan", study, "--set", "compare.confidence=0.6", "--set", "compare.margin=30%"]
    refused = call(*words)
    assert refused.exit_code == 2
    assert refused.stderr.count("refused: ") == 2
    assert refused.stderr.endswith("`--force` runs it all the same, and the report will say so.\n")
    problems = json.loads(call(*words, "--json").stdout)["problems"]
    assert [problem["code"] for problem in problems] == ["confidence-low", "margin-large"]
    forced = call(*words, "--force")
    assert forced.exit_code == 0
    assert forced.stdout.count("Refused, but forced: ") == 2


def test_plan_estimates_from_a_measurement(study: Path) -> None:
    words = ("plan", study, "--estimate", "--json", "--set", "execution.workers=4")
    answer = json.loads(call(*words).output)["estimate"]
    assert set(answer["seconds_per_run"]) == {"baseline", "oelm"}
    assert all(seconds > 0 for seconds in answer["seconds_per_step"].values())
    assert answer["workers"] == 4
    assert answer["total_seconds"] == pytest.approx(max(answer["seconds_per_run"].values())), "all four side by side"
    assert not Path("runs").exists(), "an estimate leaves nothing behind"


def test_schema_is_a_json_schema_with_every_method() -> None:
    schema = json.loads(call("schema").output)
    assert schema["$schema"].startswith("https://json-schema.org")
    assert "orthogonal_qk" in json.dumps(schema["$defs"]["MethodUse"])


@pytest.mark.usefixtures("study")
def test_status_and_report_of_nothing() -> None:
    assert call("status").exit_code == 0
    assert "No study" in call("status").output
    for verb in ("status", "report"):
        answer = call(verb, "tyo")
        assert answer.exit_code == 2
        assert "no study 'tyo'" in answer.output


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("model=nowhere/at/all", "model: 'nowhere/at/all': there is no such folder"),
        ("task=movie-revews", "Did you mean 'movie-reviews'"),
        ("task.text=txt", "no column 'txt'"),
        ("task.train=missing.csv", "there is no such file"),
        ("train.batch_size=0", "found 0; allowed: a whole number"),
        ("seeds=-1", "found -1"),
        ("arms.oelm.methods=[fgn]", "unknown method 'fgn'"),
        ("arms={}", "is empty"),
        ("train.max_length=200", "128 positions"),
        ("nonsense", "has the form KEY=VALUE"),
    ],
)
def test_a_users_mistake_is_one_sentence_and_exit_code_2(study: Path, override: str, expected: str) -> None:
    answer = call("run", study, "--set", override)
    assert answer.exit_code == 2, answer.output
    assert expected in answer.output
    assert "Traceback" not in answer.output
    assert answer.exception is None or isinstance(answer.exception, SystemExit)
    assert not Path("runs").exists(), "nothing was begun"
