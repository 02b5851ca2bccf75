"""Trials: the same number for every arm, drawn once from the space, and a choice that follows from scores alone."""

from __future__ import annotations

from typing import Any

import pytest

from fairtune.settings.tune import FIRST_SEED
from fairtune.study.problems import StudyError
from fairtune.study.schema import Study
from fairtune.study.study_file import load_study
from fairtune.study.trials import BORROWED, Trial, best_trial, draw_points, find_trials, trial_study, tuned_study

RATES = [1e-5, 3e-5, 1e-4, 3e-4]
SPACE = {"lr": RATES, "warmup": [0.06, 0.1]}


def study_with(tune: dict[str, Any] | None, **others: Any) -> Study:
    arms = {"baseline": {"lr": 2e-5}, "fast": {"lr": 1e-3}, "focal": {"methods": [{"focal": {"gamma": 2}}]}}
    source = {"study": "s", "task": "sst2", "model": "minilm", "train": {"examples": 400}, "arms": arms, "tune": tune}
    return load_study({**source, **others})


def run_all(study: Study, score: Any, metric: str = "accuracy") -> list[Trial]:
    """Every round, with a score made up for each trial."""
    scores: dict[str, float | None] = {}
    while True:
        trials = find_trials(study, metric, scores)
        new = [trial for trial in trials if trial.name not in scores]
        if not new:
            return trials
        scores |= {trial.name: score(trial) for trial in new}


def points_of(trials: list[Trial], arm: str) -> list[dict[str, Any]]:
    return [trial.point for trial in trials if trial.arm == arm]


def test_all_arms_try_the_same_points_which_follow_from_the_space_alone() -> None:
    tune = {"space": SPACE, "trials": 6}
    trials = find_trials(study_with(tune), "accuracy", {})
    found = points_of(trials, "baseline")
    assert len(found) == 6
    assert len({tuple(point.items()) for point in found}) == 6
    assert found == points_of(trials, "fast") == points_of(trials, "focal")
    other = study_with(tune, seeds=[7, 8], study="other", task="cola")
    assert points_of(find_trials(other, "mcc", {}), "baseline") == found  # nothing to draw again by


def test_ranges_are_drawn_inside_their_ends_and_by_ratio_where_asked() -> None:
    tune = _tune({"space": {"lr": {"low": 1e-6, "high": 1e-2, "log": True}}, "trials": 200})
    drawn = [point["lr"] for point in draw_points(tune, ())]
    assert min(drawn) >= 1e-6
    assert max(drawn) <= 1e-2
    assert 80 < sum(rate < 1e-4 for rate in drawn) < 120


def test_a_methods_own_field_stands_beside_the_shared_ones_in_as_many_trials() -> None:
    study = study_with({"space": {**SPACE, "focal": {"gamma": [1, 2, 5]}}, "trials": 6})
    trials = find_trials(study, "accuracy", {})
    shared = [{name: point[name] for name in SPACE} for point in points_of(trials, "focal")]
    assert shared == points_of(trials, "baseline")
    assert sorted(point["focal.gamma"] for point in points_of(trials, "focal")) == [1, 1, 2, 2, 5, 5]
    own = trial_study(study, trials)
    gammas = {own.methods(trial.name)[0].config.gamma for trial in trials if trial.arm == "focal"}
    assert gammas == {1, 2, 5}


def test_a_trial_trains_with_its_point_and_its_budget_and_never_on_more_than_is_reported() -> None:
    study = study_with({"space": {"lr": RATES}, "trials": 4, "budget": {"examples": 1000, "epochs": 1}})
    trials = find_trials(study, "accuracy", {})
    own = trial_study(study, trials)
    train = own.settings(trials[-1].name)
    assert (train.lr, train.examples, train.epochs) == (3e-4, 400, 1)
    assert own.seeds == (FIRST_SEED, FIRST_SEED + 1)
    assert not set(own.seeds) & set(study.seeds)


def test_borrowing_tries_what_the_others_chose_with_the_methods_own_best_field() -> None:
    study = study_with({"space": {"lr": RATES, "focal.gamma": [1, 2]}, "trials": 4, "borrow": True})
    drawn = points_of(find_trials(study, "accuracy", {}), "focal")
    own = drawn[0]
    rival = next(point for point in drawn if point["focal.gamma"] != own["focal.gamma"])
    best = {"baseline": rival["lr"], "fast": rival["lr"], "focal": own["lr"]}
    trials = run_all(study, lambda trial: trial.point["lr"] == best[trial.arm])
    (borrowed,) = [trial for trial in trials if trial.origin == BORROWED]
    assert (borrowed.arm, borrowed.point) == ("focal", {"lr": rival["lr"], "focal.gamma": own["focal.gamma"]})


def test_a_failed_trial_is_never_chosen_and_lower_is_better_where_it_is() -> None:
    study = study_with({"space": {"lr": RATES}, "trials": 4})
    own = [trial for trial in find_trials(study, "accuracy", {}) if trial.arm == "baseline"]
    scores = dict(zip((trial.name for trial in own), (0.1, 0.3, None, 0.2), strict=True))
    assert best_trial(own, "accuracy", scores) == own[1]
    assert best_trial(own, "loss", scores) == own[0]
    assert best_trial(own, "accuracy", dict.fromkeys(scores)) is None


def test_chosen_settings_replace_those_of_the_arm_and_of_its_method() -> None:
    study = study_with({"space": {"lr": RATES, "focal.gamma": [1, 5]}, "trials": 4})
    found = tuned_study(study, {"focal": Trial("focal", {"lr": 3e-4, "focal.gamma": 5}, {})})
    assert found.settings("focal").lr == 3e-4
    assert found.methods("focal")[0].config.gamma == 5
    assert found.settings("baseline").lr == 2e-5


BAD = {
    "lrr": ({"space": {"lrr": [1]}}, "tune.space.lrr: unknown field; allowed: lr, "),
    "a value": ({"space": {"lr": [1e-5, 0]}}, "found 0, which this field does not take"),
    "a method's value": ({"space": {"focal.gamma": [-1]}}, "found -1, which this field does not take"),
    "a method's field": ({"space": {"focal.gama": [1]}}, "'focal' has no field 'gama'; allowed: gamma, alpha"),
    "a method of no arm": ({"space": {"fgm.epsilon": [1]}}, "no arm of the study has the method 'fgm'"),
    "no method": ({"space": {"focl.gamma": [1]}}, "unknown method 'focl'"),
    "data": ({"space": {"examples": [10, 20]}}, "decides what is learned from"),
    "seeds": ({"space": SPACE, "seeds": [0, 99]}, "tune.seeds: seed 0 would also be reported"),
    "a grid": ({"space": SPACE, "trials": 6, "sampler": "grid"}, "the grid has 8 points, trials is 6"),
    "a grid of a range": ({"space": {"lr": {"low": 1, "high": 2}}, "sampler": "grid"}, "a range has no grid"),
    "a range": ({"space": {"lr": {"low": 2, "high": 1}}}, "allowed: a list of different values"),
    "budget": ({"space": SPACE, "budget": {"lr": 1}}, "is in the space too"),
    "two lengths": (
        {"space": {"epochs": [1, 2]}, "budget": {"steps": 5}},
        "`steps`, which are set too, would replace it",
    ),
    "labels counted otherwise": (
        {"space": SPACE, "budget": {"examples": {"per_class": 8}}},
        "give a number, or leave it out",
    ),
}


@pytest.mark.parametrize(("tune", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_sentence(tune: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_with(tune)
    assert len(caught.value.problems) == 1
    assert message in str(caught.value)


def test_without_a_trained_arm_there_is_nothing_to_tune() -> None:
    with pytest.raises(StudyError, match="no arm is trained, so there is nothing to tune"):
        study_with({"space": SPACE}, arms={"majority": {}, "tfidf": {}}, compare={"to": "majority"})


def test_trials_have_no_more_labels_of_a_class_than_reported_runs() -> None:
    tune = {"space": {"lr": RATES}, "trials": 2, "budget": {"examples": {"per_class": 64}}}
    study = study_with(tune, train={"examples": {"per_class": 4, "resample": "seed"}})
    trials = find_trials(study, "accuracy", {})
    assert trial_study(study, trials).settings(trials[0].name).examples.per_class == 4


def test_a_method_that_only_looks_on_keeps_its_settings() -> None:
    arms = {"baseline": {}, "idle": {"methods": [{"rdrop": {"alpha": 0}}]}, "acting": {"methods": ["rdrop"]}}
    study = study_with({"space": {"lr": RATES, "rdrop.alpha": [1, 5]}, "trials": 4}, arms=arms)
    trials = find_trials(study, "accuracy", {})
    assert all("rdrop.alpha" not in point for point in points_of(trials, "idle"))
    assert {point["rdrop.alpha"] for point in points_of(trials, "acting")} == {1, 5}


def _tune(tune: dict[str, Any]) -> Any:
    return study_with(tune).tune
