"""Arms taken out or chosen on the command line: no learning rate is lost."""

from __future__ import annotations

from typing import Any

import pytest

from fairtune.cli.command import choice_text, read_arms
from fairtune.core.errors import FairtuneError
from fairtune.study.plan import Plan, make_plan
from fairtune.study.problems import StudyError
from fairtune.study.study_file import load_study

ARMS: dict[str, Any] = {
    "baseline": {"lr": 2e-5},
    "baseline-fast": {"lr": 1e-4},
    "frozen": {"lr": 1e-4, "methods": [{"orthogonal_qk": {"init": "keep"}}]},
    "focal": {"lr": 2e-5, "methods": ["focal"]},
}


def study(*overrides: str, **more: Any) -> Any:
    return load_study({"study": "s", "task": "sst2", "model": "minilm", "arms": ARMS, **more}, overrides)


def refusal(*overrides: str, **more: Any) -> str:
    with pytest.raises(StudyError) as caught:
        study(*overrides, **more)
    return str(caught.value)


def test_null_takes_an_arm_out() -> None:
    assert list(study("arms.focal=null").arms) == ["baseline", "baseline-fast", "frozen"]
    assert list(study("arms.focal=null", "arms.frozen=null", "arms.baseline-fast=~").arms) == ["baseline"]


def test_what_is_taken_out_may_be_put_back() -> None:
    assert study("arms.focal=null", "arms.focal={lr: 1e-3, methods: [focal]}").settings("focal").lr == 1e-3
    assert list(study("arms.frozen=null", "arms.baseline-fast=null", "arms.baseline-fast={lr: 1}").arms) == [
        "baseline",
        "focal",
        "baseline-fast",
    ]


def test_an_arm_that_is_not_there_gets_the_nearest_name() -> None:
    assert refusal("arms.focl=null") == (
        "--set arms.focl=null: there is no arm 'focl' to remove; arms: baseline, baseline-fast, frozen, focal. "
        "Did you mean 'focal'?"
    )


def test_what_the_others_are_compared_to_stays() -> None:
    assert "compare.to: no arm is called 'baseline'; arms: baseline-fast, frozen, focal" in refusal(
        "arms.baseline=null"
    )
    for order in (
        ["arms.baseline=null", "compare.to=baseline-fast"],
        ["compare.to=baseline-fast", "arms.baseline=null"],
    ):
        assert list(study(*order, "arms.focal=null").arms) == ["baseline-fast", "frozen"]


def test_a_list_of_arms_keeps_the_settings_of_those_the_study_has() -> None:
    found = study("arms=[baseline, focal, oelm-random]")
    assert list(found.arms) == ["baseline", "focal", "oelm-random"]
    assert found.settings("baseline").lr == 2e-5, "not the default"
    assert found.methods("focal") == study().methods("focal")
    assert found.methods("oelm-random"), "a named arm is added as it is"
    assert "'fokal' is neither an arm of the study nor a named arm; there are:" in refusal("arms=[baseline, fokal]")
    assert "Did you mean 'focal'" in refusal("arms=[baseline, fokal]")


@pytest.fixture
def plan(tiny_model: Any, tiny_task: Any) -> Plan:
    source = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "seeds": 2, "arms": ARMS}
    return make_plan(load_study(source))


def test_chosen_arms_come_with_those_they_are_compared_with(plan: Plan) -> None:
    assert plan.choose(None) == list(ARMS)
    assert plan.choose(["focal"]) == ["baseline", "focal"]
    assert plan.choose(["frozen"]) == ["baseline", "baseline-fast", "frozen"]
    with pytest.raises(
        FairtuneError, match=r"--arms: the study has no arm 'frosen'; its arms: .*Did you mean 'frozen'"
    ):
        plan.choose(["frosen"])


def test_what_is_left_out_is_said(plan: Plan) -> None:
    assert choice_text(plan, list(ARMS)) is None
    said = str(choice_text(plan, ["baseline", "focal"]))
    assert said.startswith("2 of 4 arms: baseline, focal. The plan stays whole")
    assert "baseline-fast, frozen can be run later" in said


def test_the_option_names_something() -> None:
    assert read_arms(None) is None
    assert read_arms(" a, b ,") == ["a", "b"]
    with pytest.raises(FairtuneError, match="--arms: it names no arm"):
        read_arms(",")


def test_a_list_of_arms_in_a_profile_keeps_their_settings_but_what_the_profile_tunes() -> None:
    arms = {"baseline": {"lr": 2e-5}, "slow": {"lr": 1e-5, "epochs": 2}, "oelm-freeze": {"lr": 1e-4}}
    tune = {"space": {"lr": [1e-5, 1e-4]}, "trials": 2, "seeds": 1}
    profiles = {
        "some": {"arms": ["baseline", "slow", "majority"]},
        "tuned": {"arms": ["baseline", "slow"], "tune": tune},
    }
    written = {"study": "s", "task": "movie-reviews", "model": "minilm", "arms": arms, "profiles": profiles}
    some, tuned = (load_study(written, profile=name) for name in profiles)
    assert list(some.arms) == ["baseline", "slow", "majority"]
    assert (some.settings("baseline").lr, some.settings("slow").lr, some.settings("slow").epochs) == (2e-5, 1e-5, 2)
    assert tuned.settings("slow").lr == tuned.settings("baseline").lr
    assert tuned.settings("slow").epochs == 2
