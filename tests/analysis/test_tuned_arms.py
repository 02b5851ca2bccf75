"""Expected best of k trials, what a study's tuning is said to be, and choices that do not follow from the trials."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study

from fairtune.analysis.tuned_arms import expect_best, point_text
from fairtune.analysis.verification import verify_study
from fairtune.core.files import read_json, write_json, write_sealed
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study
from fairtune.report.writer import write_report

SCORES = [[0.70, 0.74], [0.81, 0.79], [0.60, 0.66], [0.78, 0.80]]


def test_the_expected_best_of_k_is_the_mean_over_every_choice_of_k_trials() -> None:
    means = [np.mean(own) for own in SCORES]
    curve = expect_best(SCORES, lower_is_better=False)
    for point in curve:
        best = [max(chosen) for chosen in itertools.combinations(means, point.trials)]
        assert point.expected == pytest.approx(np.mean(best))
        assert point.low <= point.expected <= point.high
    assert [point.trials for point in curve] == [1, 2, 3, 4]
    widths = [point.high - point.low for point in curve]
    assert widths[0] > widths[-1] > 0  # at last only the luck of seeds is left


def test_where_lower_is_better_the_lowest_is_the_best() -> None:
    curve = expect_best([[3.0], [2.0], [5.0]], lower_is_better=True)
    assert [point.expected for point in curve] == pytest.approx([10 / 3, (2 + 3 + 2) / 3, 2.0])
    assert (curve[-1].low, curve[-1].high) == (2.0, 2.0)
    assert expect_best([], lower_is_better=True) == ()


def tuned_ledger(runs: Path) -> MadeLedger:
    """Two arms, each with two trials of two seeds; the first trial of both is the better one, and it was chosen."""
    made = make_study(
        runs, {"baseline": ArmSpec([336, 338, 334]), "focal": ArmSpec([343, 341, 335], methods=[{"focal": {}}])}
    )
    arms, planned = {}, []
    for arm, rate, seed in itertools.product(made.arms, (1e-4, 1e-3), (90, 91)):
        name = f"{arm}+{rate:g}"
        arms[name] = {"methods": [], "train": {"lr": rate}, "control": None, "primary": None}
        arms[name]["trial"] = {"arm": arm, "point": {"lr": rate}, "origin": "drawn"}
        planned.append({"arm": name, "seed": seed, "position": len(planned), "key": f"{name}-{seed}"})
    study = read_json(runs / STUDY / "study.json") or {}
    trials = {**study, "plan": "tttt", "study": f"{STUDY}/tuning", "arms": arms, "runs": planned}
    write_study(runs / STUDY / "tuning", trials)
    for run in planned:
        folder = run_folder(runs, f"{STUDY}/tuning", run["arm"], run["seed"])
        folder.write_plan({"plan": "tttt", **run})
        score = 0.85 - arms[run["arm"]]["train"]["lr"] * 50 + run["seed"] / 1000
        write_json(folder.events, {})
        _close(folder, run["key"], {"accuracy": score})
    chosen = {arm: {"trial": f"{arm}+0.0001", "chosen": {"lr": 1e-4}, "trials": 2, "own": []} for arm in made.arms}
    record = {
        "plan": "tttt", "fields": ["lr"], "seeds": [90, 91], "budget": {"examples": 100}, "sampler": "random",
        "borrow": True, "runs": 8, "arms": chosen,
    }  # fmt: skip
    write_study(runs / STUDY, {**study, "tuning": record})
    return made


def _close(folder: RunFolder, key: str, metrics: dict[str, float]) -> None:
    result: dict[str, Any] = {"status": "finished", "metric": "accuracy", "metrics": {"validation": metrics}}
    close_run(folder, key, {**result, "seconds": {"total": 3.0}, "tokens": 500})


def test_a_tuned_study_says_so_in_its_first_lines_and_shows_what_was_tried(tmp_path: Path, undrawn: None) -> None:  # noqa: ARG001
    results = tuned_ledger(tmp_path).results()
    assert results.tuning is not None
    assert "settings tuned: 2 trials x 2 seeds on validation" in results.verdict().design[1]
    assert not [caution for caution in results.cautions if caution.code in ("choice-not-best", "trials-missing")]
    write_report(results)
    page = (tmp_path / STUDY / "report" / "index.html").read_text()
    text = (tmp_path / STUDY / "report" / "report.md").read_text()
    assert "<h2>Tuning</h2>" in page
    assert "| focal | lr 0.0001 | 93.55 | 93.50, 93.60 | chosen |" in text
    assert "none was scored on the test split; trials train with examples 100" in text
    assert "Nothing was left to borrow" in text


def test_a_choice_that_is_not_the_best_trial_or_cannot_be_checked_is_told(tmp_path: Path) -> None:
    made = tuned_ledger(tmp_path)
    study = read_json(tmp_path / STUDY / "study.json")
    assert study is not None
    study["tuning"]["arms"]["focal"]["trial"] = "focal+0.001"
    write_sealed(tmp_path / STUDY / "study.json", study)
    codes = [caution.code for caution in made.results().cautions]
    assert "choice-not-best" in codes
    (problem,) = verify_study(tmp_path, STUDY).problems
    assert "its trials say those of focal+0.0001" in problem
    for file in (tmp_path / STUDY / "tuning" / "plans").glob("*.json"):
        file.unlink()
    assert "trials-missing" in [caution.code for caution in made.results().cautions]


def test_a_point_is_told_in_a_line() -> None:
    assert (
        point_text({"lr": 1e-4, "focal.gamma": 2.0, "schedule": "cosine"})
        == "lr 0.0001, focal.gamma 2, schedule cosine"
    )
    assert point_text({}) == "as given"


@pytest.mark.parametrize(("right", "word"), [([343, 341, 345], "not shown"), ([300, 298, 303], "better")])
def test_a_verdict_must_hold_beside_the_partner_with_the_same_settings(
    tmp_path: Path, right: list[int], word: str
) -> None:
    """The arm beats its partner as that was tuned; it must also beat the partner with the rate that the arm chose."""
    arms = {
        "baseline": ArmSpec([300, 302, 299]),
        "focal": ArmSpec([343, 344, 342], methods=[{"focal": {}}]),
        "baseline-lr-1e-3": ArmSpec(right, lr=1e-3),
    }
    made = make_study(tmp_path, arms)
    study = read_json(tmp_path / STUDY / "study.json") or {}
    study["arms"]["focal"]["matched"] = "baseline-lr-1e-3"
    study["arms"]["baseline-lr-1e-3"]["matches"] = ["focal"]
    write_sealed(tmp_path / STUDY / "study.json", study)
    results = made.results()
    (found,) = [one for one in results.comparisons if one.arm == "focal"]
    assert found.verdict.word == word
    text = " ".join(results.verdict().findings[1].cautions)
    assert "It chose other settings than baseline; beside baseline-lr-1e-3, which has the same: " in text
    control = results.comparison("baseline-lr-1e-3")
    assert control is not None
    assert control.role == "descriptive"
    assert results.verdict().settled == (word == "better")  # the control itself leaves nothing open
    badly = "badly-tuned" in [caution.code for caution in results.cautions]
    assert badly == (word == "not shown")


def test_methods_left_out_are_not_judged_by_the_settings_that_were_chosen(tmp_path: Path) -> None:
    two = [{"focal": {}}, {"fgm": {}}]
    arms = {"baseline": ArmSpec([300, 302, 299]), "focal": ArmSpec([301, 303, 300], methods=two[:1])}
    made = make_study(tmp_path, {**arms, "both": ArmSpec([343, 344, 342], lr=1e-3, methods=two)})
    study = read_json(tmp_path / STUDY / "study.json") or {}
    record = {
        "plan": "t",
        "fields": ["lr"],
        "seeds": [9],
        "budget": {},
        "sampler": "random",
        "borrow": False,
    }
    study["tuning"] = {**record, "runs": 0, "arms": {}, "trials": 2, "space": {"lr": [1, 2]}}
    write_sealed(tmp_path / STUDY / "study.json", study)
    (found,) = made.results().left_out
    assert found.verdict.word == "not shown"
    assert "they chose another lr" in found.verdict.note


def test_trials_with_other_seeds_are_counted_as_others(tmp_path: Path) -> None:
    made = tuned_ledger(tmp_path)
    folder = run_folder(tmp_path, f"{STUDY}/tuning", "focal+0.001", 77)
    folder.write_plan({"plan": "other", "key": "other"})
    _close(folder, "other", {"accuracy": 0.9})
    results = made.results()
    assert results.tuning is not None
    assert results.tuning.others == 1
    assert "other-trials" in [caution.code for caution in results.cautions]
