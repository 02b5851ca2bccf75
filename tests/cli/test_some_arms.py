"""`--arms`: a part of a plan is run or shown, and the plan, its hash and its registration stay those of all arms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.analysis.results import load_results
from fairtune.analysis.study_verdict import family_size
from fairtune.cli.app import app

pytestmark = pytest.mark.usefixtures("performed_here", "undrawn")


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "toy.yaml"
    arms = {
        "baseline": {},
        "focal": {"methods": ["focal"]},
        "frozen": {"methods": [{"orthogonal_qk": {"init": "keep"}}]},
    }
    source = {
        "study": "toy", "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 2, "arms": arms,
        "train": {"steps": 1, "batch_size": 4, "max_length": 16, "eval_examples": 10}, "execution": {"devices": "cpu"},
    }  # fmt: skip
    file.write_text(yaml.safe_dump(source, sort_keys=False))
    return file


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_part_is_run_of_the_whole_plan_and_the_rest_later(study: Path) -> None:
    planned = json.loads(call("plan", study, "--json").stdout)
    first = call("run", study, "--arms", "focal")
    assert first.exit_code == 0, first.output
    assert "fairtune: 2 of 3 arms: baseline, focal. The plan stays whole" in first.stderr
    results = load_results("runs", "toy")
    assert results.plan["plan"] == planned["plan"], "what is registered is the whole plan"
    assert {run.arm for run in results.runs if run.status == "finished"} == {"baseline", "focal"}
    assert family_size(results) == 2, "no correction shrank"
    second = call("run", study)
    assert second.exit_code == 0, second.output
    assert "6 runs, 4 finished before" in second.stderr
    whole = load_results("runs", "toy")
    assert whole.registration.changes == (), "nothing was planned anew"
    assert all(run.status == "finished" for run in whole.runs)


def test_a_plan_shows_the_runs_of_some_arms_and_says_so(study: Path) -> None:
    whole, some = call("plan", study), call("plan", study, "--arms", "focal")
    assert whole.stdout.splitlines()[0] == some.stdout.splitlines()[0], "the same hash"
    assert sum(" frozen " in line for line in whole.stdout.splitlines()) == 2
    assert not any(" frozen " in line and "orthogonal_qk" in line for line in some.stdout.splitlines())
    assert "2 of 3 arms: baseline, focal. The plan stays whole" in some.stdout
    assert json.loads(call("plan", study, "--arms", "focal", "--json").stdout)["chosen"] == ["baseline", "focal"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["run", "--arms", "fokal"],
            "--arms: the study has no arm 'fokal'; its arms: baseline, focal, frozen. Did you mean",
        ),
        (["plan", "--arms", "fokal"], "Did you mean 'focal'?"),
        (["run", "--arms", ","], "--arms: it names no arm"),
        (["run", "--arms", "focal", "--until-decided"], "--until-decided goes on until every comparison is settled"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(study: Path, words: list[str], expected: str) -> None:
    verb, *options = words
    answer = call(verb, study, *options)
    assert answer.exit_code == 2
    assert expected in answer.stderr
    assert not Path("runs").exists()
