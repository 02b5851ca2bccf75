"""What is changed or removed after results were known is on record with its date: a plug-in's code, and runs that are gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.analysis.results import load_results
from fairtune.cli.app import app
from fairtune.execution import smoke
from fairtune.testing.runs import toy_source
from tests.conftest import forget_plugins, performing_here
from tests.made_plugin import ADDS

pytestmark = [pytest.mark.usefixtures("forgotten_plugins", "undrawn"), pytest.mark.slow]
FAILS = '\n    def prepare(self, model):\n        raise ValueError("there is no such layer")\n'
Run = Callable[..., Any]


@pytest.fixture
def study(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> Path:
    """Two arms; `mine` has a method of a module beside the study."""
    (tmp_path / "mine.py").write_text(ADDS.format(name="nothing"))
    source = toy_source(tiny_model, tiny_task) | {"plugins": ["mine"], "seeds": 2}
    source["train"] |= {"epochs": 1, "examples": 16, "eval_examples": 20}
    source["arms"] = {"baseline": {}, "mine": {"methods": ["nothing"]}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(source, sort_keys=False))
    return tmp_path / "study.yaml"


@pytest.fixture
def run(study: Path) -> Run:
    def run(*words: str) -> Any:
        forget_plugins()
        with performing_here():
            return CliRunner().invoke(
                app, ["run", str(study), "--allow-plugins", "--runs", str(study.parent / "runs"), *words]
            )

    return run


def changes(study: Path) -> list[tuple[str, int]]:
    found = load_results(study.parent / "runs", "toy").registration
    assert found.fixed_before == (not any(change.known for change in found.changes))
    return [(change.what, change.known) for change in found.changes]


def test_changed_code_of_a_plugin_is_a_change_of_the_study(study: Path, run: Run) -> None:
    assert run().exit_code == 0
    assert changes(study) == []
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + "\n    def after_step(self, moment): pass\n")
    refused = run()
    assert refused.exit_code == 2
    assert "plugins" in refused.output
    shutil.rmtree(study.parent / "runs" / "toy" / "mine")
    assert run().exit_code == 0
    assert changes(study) == [("code of plug-in mine", 2), ("finished runs of mine (seeds 0, 1)", 2)]
    verified = json.loads(CliRunner().invoke(app, ["verify", "--json", "--runs", str(study.parent / "runs")]).stdout)
    assert verified["sound"]
    assert len(verified["studies"][0]["changes"]) == 2


def test_runs_that_failed_are_replaced_once_their_plugin_is_fixed(study: Path, run: Run) -> None:
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + FAILS)
    failed = run()
    assert failed.exit_code == 1
    assert "there is no such layer" in failed.output
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing"))
    assert run().exit_code == 0, "the same command tries it again"
    assert len(load_results(study.parent / "runs", "toy").finished("mine")) == 2
    assert changes(study) == [("code of plug-in mine", 4)]
    events = (study.parent / "runs" / "toy" / "mine" / "seed-0" / "events.jsonl").read_text()
    assert "no such layer" not in events, "nothing of the failed run is mixed with the new one"


@pytest.mark.parametrize("again", [False, True])
def test_runs_that_are_moved_away_are_missed(study: Path, run: Run, again: bool) -> None:
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + FAILS)
    assert run().exit_code == 1
    home = study.parent / "runs" / "toy"
    (home / "mine" / "seed-1").rename(study.parent / "elsewhere")
    (home / "baseline" / "seed-0").rename(study.parent / "also-elsewhere")
    if again:
        run()
    gone = [("failed run of mine (seed 1)", 2), ("finished run of baseline (seed 0)", 2)]
    assert sorted(changes(study)) == gone
    if not again:
        found = json.loads(CliRunner().invoke(app, ["verify", "--json", "--runs", str(study.parent / "runs")]).stdout)
        assert not found["sound"]
        assert len(found["studies"][0]["problems"]) == 2


def test_a_failed_run_that_is_tried_again_is_not_missed(study: Path, run: Run) -> None:
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + FAILS)
    assert run().exit_code == 1
    assert run().exit_code == 1
    assert changes(study) == []


def test_a_smoke_test_names_the_broken_arm_and_records_nothing(study: Path, run: Run) -> None:
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + FAILS)
    found = run("--smoke", "--json")
    assert found.exit_code == 1
    arms = json.loads(found.stdout)
    assert arms["baseline"]["passed"]
    assert not arms["mine"]["passed"]
    assert "there is no such layer (mine.py, line" in arms["mine"]["reason"]
    assert not (study.parent / "runs").exists()


@pytest.mark.parametrize("broken", ["state_dict", "load_state_dict", "after_step"])
def test_a_smoke_test_goes_through_a_checkpoint(study: Path, run: Run, broken: str) -> None:
    breaks = f"\n    def {broken}(self, *_):\n        raise ValueError('in {broken}')\n"
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + breaks)
    assert f"in {broken}" in run("--smoke").stdout


def test_a_long_study_says_first_which_arm_is_broken(study: Path, run: Run) -> None:
    (study.parent / "mine.py").write_text(ADDS.format(name="nothing") + FAILS)
    found = run("--set", "seeds=[0]", "--set", f"train.steps={smoke.LONG // 2}", "--set", "train.eval_examples=10")
    assert found.exit_code == 1
    assert found.stderr.index("smoke test: arm mine fails") < found.stderr.index("mine/seed-0 failed")
    home = study.parent / "runs" / "toy"
    assert (home / "baseline" / "seed-0" / "result.json").exists(), "the other arms go on"
    assert not (home / ".smoke").exists()
