"""Tuning a real study: trials are runs like any other, never see the test split, and lead to the same choice after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fairtune.analysis.results import Results, load_results
from fairtune.analysis.verification import verify_study
from fairtune.api import planned_study, run_study
from fairtune.cli.app import app
from fairtune.core.errors import FairtuneError, LedgerError, Stopped
from fairtune.core.files import read_json, write_sealed
from fairtune.execution import study_run
from fairtune.ledger.folders import run_folders, study_names
from fairtune.ledger.predictions import read_predictions
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.study.trials import Trial, Tuned
from tests.conftest import InProcessExecutor, performing_here
from tests.execution.made_runs import study_of

SLOW, FAST = 1.5e-3, 4e-3
TUNE = {"space": {"lr": [SLOW, FAST]}, "trials": 2, "seeds": [2_000_001], "budget": {"evaluate": 60}}
BRIEF = ["train.steps=3", "tune.budget={steps: 2}", "seeds=1"]


def planted(model: Path, task: Any, **tune: Any) -> dict[str, Any]:
    """Two arms that are the same but for the learning rate, of which one hardly learns."""
    source = study_of(model, task, {"baseline": [], "trick": []})
    source["arms"] = {"baseline": {"lr": SLOW}, "trick": {"lr": FAST}}
    source["train"] |= {"steps": 60, "batch_size": 24, "max_length": 12, "evaluate": 40, "eval_examples": 100}
    execution = {"devices": "cpu", "save_model": False}
    return {**source, "study": "planted", "seeds": 3, "execution": execution, "tune": {**TUNE, **tune}}


@pytest.fixture(scope="module")
def tuned(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Results:
    runs = tmp_path_factory.mktemp("tuned")
    with performing_here():
        return run_study(planted(tiny_model, tiny_task), runs, progress=False)


@pytest.mark.usefixtures("performed_here")
def test_an_arm_that_only_has_a_better_rate_wins_as_given_and_not_when_tuned(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, tuned: Results
) -> None:
    kept = Path("planted", "trick")  # whose settings are the same, chosen or given
    shutil.copytree(tuned.runs_folder / kept, tmp_path / kept)
    given = run_study(planted(tiny_model, tiny_task), tmp_path, ["tune=null"], progress=False)
    assert given.verdict().words["trick"] == "better"
    assert "settings as given" in given.verdict().design[1]
    assert tuned.verdict().words["trick"] == "not separable"
    assert tuned.summary("baseline").mean == tuned.summary("trick").mean > given.summary("baseline").mean
    assert "settings tuned: 2 trials x 1 seed on validation, cost " in tuned.verdict().design[1]


def test_trials_are_runs_on_record_that_never_saw_the_test_split(tuned: Results) -> None:
    runs = tuned.runs_folder
    assert study_names(runs) == ["planted", "planted/tuning"]
    folders = run_folders(runs / "planted" / "tuning")
    assert len(folders) == 4
    for folder in folders:
        assert set(json.loads(folder.result.read_text())["metrics"]) == {"validation"}
        assert not read_predictions(folder.predictions, "test").ids
        assert read_predictions(folder.predictions, "validation").ids
        assert folder.seed not in tuned.plan["seeds"]
    assert verify_study(runs, "planted/tuning").sound
    with pytest.raises(LedgerError, match="scored on validation alone"):
        load_results(runs, "planted/tuning")


def test_the_chosen_settings_are_in_the_plan_of_the_reported_runs(tuned: Results) -> None:
    assert [tuned.plan["arms"][arm]["train"]["lr"] for arm in ("baseline", "trick")] == [FAST, FAST]
    assert {run["settings"]["train"]["lr"] for run in tuned.plan["runs"]} == {FAST}
    assert tuned.plan["tuning"]["arms"]["baseline"]["chosen"] == {"lr": FAST}
    found = tuned.tuning
    assert found is not None
    assert found.complete
    assert not found.others
    assert found.share is not None
    assert 0 < found.share < 1
    assert found.arms["trick"].best == found.arms["trick"].chosen


def test_what_was_tuned_is_no_confound_and_the_same_study_runs_nothing_again(
    tiny_model: Path, tiny_task: Any, tuned: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = tuned.comparisons
    assert not found.confounds
    monkeypatch.setattr(study_run, "_default_executor", lambda *_: pytest.fail("nothing is left to run"))
    again = run_study(planted(tiny_model, tiny_task), tuned.runs_folder, progress=False)
    assert again.plan["plan"] == tuned.plan["plan"]
    plan = planned_study(load_study(planted(tiny_model, tiny_task)), tuned.runs_folder)
    assert plan.hash == tuned.plan["plan"]


class KilledExecutor(InProcessExecutor):
    """Ends after so many runs, as a process that is killed does."""

    runs = 3

    def events(self) -> Any:
        for count, event in enumerate(super().events(), start=1):
            yield event
            if count == self.runs:
                raise Stopped


def test_killed_in_the_middle_of_tuning_it_ends_in_the_same_choice_and_bits(
    tiny_model: Path, tiny_task: Any, tmp_path: Path
) -> None:
    source, killed, whole = planted(tiny_model, tiny_task), tmp_path / "killed", tmp_path / "whole"
    with study_run.use_executor(lambda *_: KilledExecutor("cpu")), pytest.raises(Stopped):
        run_study(source, killed, BRIEF, progress=False)
    assert not (killed / "planted" / "study.json").exists()
    with study_run.use_executor(lambda *_: InProcessExecutor("cpu")):
        again, at_once = (run_study(source, runs, BRIEF, progress=False) for runs in (killed, whole))
    assert again.plan == at_once.plan
    folders = [*run_folders(killed / "planted"), *run_folders(killed / "planted" / "tuning")]
    assert len(folders) == 6
    for folder in folders:
        other = whole / folder.predictions.relative_to(killed)
        assert folder.predictions.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("performed_here")
def test_settings_chosen_by_hand_are_told(tuned: Results, tmp_path: Path) -> None:
    shutil.copytree(tuned.runs_folder, tmp_path / "runs")
    plan = tmp_path / "runs" / "planted" / "study.json"
    content = read_json(plan)
    assert content is not None
    record = content["tuning"]["arms"]["trick"]
    other = next(trial.name for trial in tuned.tuning.arms["trick"].trials if trial.name != record["trial"])  # type: ignore[union-attr]
    record["trial"] = other
    write_sealed(plan, content)
    codes = [caution.code for caution in load_results(tmp_path / "runs", "planted").cautions]
    assert "choice-not-best" in codes


@pytest.mark.usefixtures("performed_here")
def test_an_arm_of_which_every_trial_fails_is_said_by_name(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    source = planted(tiny_model, tiny_task, space={"lr": [1e30]}, trials=1, budget={"steps": 5})
    with pytest.raises(
        FairtuneError, match=r"arm 'baseline': a run of every trial failed.*fairtune status planted/tuning"
    ):
        run_study(source, tmp_path, progress=False)


def test_failed_trials_are_tried_again(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = planted(tiny_model, tiny_task)
    with performing_here(), monkeypatch.context() as patch:
        patch.setattr("fairtune.execution.prepare.build_start", lambda *_, **__: 1 / 0)
        with pytest.raises(FairtuneError, match="a run of every trial failed"):
            run_study(source, tmp_path, BRIEF, progress=False)
    with performing_here():
        found = run_study(source, tmp_path, BRIEF, progress=False)
    assert found.tuning is not None
    assert found.tuning.complete


def test_plan_says_what_tuning_costs(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(planted(tiny_model, tiny_task)))
    shown = _planned(file, tmp_path)
    assert (
        "every trained arm tries 2 settings (lr) with 1 seed of their own, 4 runs of 240 optimizer steps, 40.0 % of all"
        in shown
    )
    assert "Tuning" not in _planned(file, tmp_path, "--set", "tune=null")


def _planned(file: Path, folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["plan", str(file), "--runs", str(folder / "runs"), *words])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_where_choices_differ_the_partner_is_run_with_the_other_choice_too(tiny_model: Path, tiny_task: Any) -> None:
    source = planted(tiny_model, tiny_task) | {
        "arms": {"baseline": {}, "focal": {"methods": ["focal"]}, "fgm": {"methods": ["fgm"]}}
    }
    choices = {arm: Trial(arm, {"lr": rate}, {}) for arm, rate in (("baseline", SLOW), ("focal", FAST), ("fgm", FAST))}
    plan = make_plan(load_study(source), tuned=Tuned("tttt", choices, dict.fromkeys(choices, 2), 6))
    assert plan.matched == {"focal": "baseline-lr-4e-3", "fgm": "baseline-lr-4e-3"}
    assert plan.study.settings("baseline-lr-4e-3").lr == FAST
    assert not plan.study.methods("baseline-lr-4e-3")
    assert [plan.primaries[arm] for arm in plan.study.arms] == [None, "baseline", "baseline", "baseline"]
    assert plan.as_json()["arms"]["baseline-lr-4e-3"]["matches"] == ["focal", "fgm"]
    alike = {arm: Trial(arm, {"lr": FAST}, {}) for arm in choices}
    assert not make_plan(load_study(source), tuned=Tuned("tttt", alike, dict.fromkeys(choices, 2), 6)).matched
