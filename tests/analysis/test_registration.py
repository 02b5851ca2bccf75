"""The first plan is the registration: what was changed since is said with dates, and changes no verdict by itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study

from fairtune.analysis.arm_pairs import ArmPair
from fairtune.analysis.registration import KnownRun, StudyRegistration, register
from fairtune.core.files import read_sealed
from fairtune.ledger.studies import write_study


def plan(name: str, recorded: str, known: int = 0, **changes: Any) -> dict[str, Any]:
    arms: dict[str, Any] = {
        "baseline": {"methods": [], "train": {"lr": 1e-4}, "control": None},
        "arm": {"methods": [{"focal": {}}], "train": {"lr": 1e-4}, "control": "baseline"},
    }
    made: dict[str, Any] = {
        "plan": name, "recorded": f"2026-11-{recorded}:00Z", "known": known, "seeds": [0, 1, 2], "arms": arms,
        "compare": {"to": "baseline", "margin": "1%", "confidence": 0.95}, "runs": [],
        "task": {"name": "made", "metric": "accuracy", "fingerprint": "f" * 16}, "model": {"name": "m", "identity": "i" * 16},
    }  # fmt: skip
    return made | changes


def runs(seeds: int, end: float | None = None, arms: tuple[str, ...] = ("baseline", "arm")) -> list[KnownRun]:
    return [KnownRun(arm, seed, end, "first") for seed in range(seeds) for arm in arms]


FIRST = plan("first", "01T10:00")
NOON_FIRST = 1793534400.0  # 2026-11-01 12:00 UTC


def compared(margin: str = "1%", confidence: float = 0.95, to: str = "baseline") -> dict[str, Any]:
    return {"to": to, "margin": margin, "confidence": confidence}


def test_one_plan_is_all_there_is_to_say() -> None:
    found = register(FIRST, [FIRST], runs(3, NOON_FIRST))
    assert (found.recorded, found.changes, found.additions, found.dropped) == ("2026-11-01T10:00:00Z", (), (), ())
    assert found.fixed_before


@pytest.mark.parametrize(
    ("compare", "overruled"),
    [
        (compared(margin="5%"), ("margin",)),
        (compared(confidence=0.85), ("confidence",)),
        (compared(to="arm"), ("to",)),
        (compared("5%", 0.9), ("margin", "confidence")),
    ],
)
def test_what_is_changed_after_a_result_changes_no_verdict(compare: dict[str, Any], overruled: tuple[str, ...]) -> None:
    later = plan("later", "02T09:30", compare=compare)
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert found.compare == FIRST["compare"]
    assert found.overruled == overruled
    assert not found.fixed_before
    assert all("2026-11-02 09:30 UTC, after 6 results were known" in str(change) for change in found.changes)


def test_unless_the_user_asks_for_a_new_analysis() -> None:
    later = plan("later", "02T09:30", compare=compared("5%"), reanalysed="2026-11-02T09:30:00Z")
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert (found.compare["margin"], found.reanalysed, found.overruled) == ("5%", "2026-11-02T09:30:00Z", ())
    assert not found.fixed_before


def test_before_the_first_result_plans_may_change() -> None:
    later = plan("later", "01T11:00", compare=compared("5%"))
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert (found.compare["margin"], found.overruled) == ("5%", ())
    assert [str(change) for change in found.changes] == [
        "2026-11-01 11:00 UTC, before any result was known: margin changed from 1% to 5%"
    ]
    assert found.fixed_before, "it was fixed before the first run"


def test_results_that_were_moved_away_were_known_all_the_same() -> None:
    later = plan("later", "02T09:30", known=6, compare=compared("5%"))
    found = register(later, [FIRST, later], [])
    assert found.changes[0].known == 6
    assert not found.fixed_before


def test_every_kind_of_change_is_named() -> None:
    arms = copy.deepcopy(FIRST["arms"])
    arms["arm"]["train"]["lr"] = 3e-4
    arms["new"] = {"methods": [], "train": {"lr": 1e-4}, "control": None}
    later = plan(
        "later", "02T09:30", arms=arms, seeds=[0, 1, 2, 3, 4], model={"name": "other", "identity": "j" * 16},
        task={"name": "made", "metric": "macro_f1", "fingerprint": "e" * 16},
    )  # fmt: skip
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    told = {change.what: (change.before, change.after) for change in found.changes}
    assert told == {
        "seeds": ("0–2", "0–4"),
        "metric": ("accuracy", "macro_f1"),
        "data": ("made@ffffffff", "made@eeeeeeee"),
        "model": ("m@iiiiiiii", "other@jjjjjjjj"),
        "lr of arm arm": ("0.0001", "0.0003"),
        "arm new": ("none of the study", "part of it"),
    }


def test_an_arm_that_is_given_up_after_its_results_still_counts() -> None:
    arms = {name: arm for name, arm in FIRST["arms"].items() if name != "arm"}
    arms["other"] = {"methods": [], "train": {"lr": 2e-4}, "control": None}
    later = plan("later", "02T09:30", arms=arms)
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert found.given_up == ("arm",)
    told = [str(change).partition("known: ")[2] for change in found.changes]
    assert told == ["arm arm was taken out", "arm other was added"]
    assert register(later, [FIRST, later], []).given_up == (), "nobody had seen anything of it"


def test_another_form_of_an_arm_is_another_try() -> None:
    arms = copy.deepcopy(FIRST["arms"])
    arms["arm"]["train"]["lr"] = 3e-4
    later = plan("later", "02T09:30", arms=arms)
    assert register(later, [FIRST, later], runs(3, NOON_FIRST)).given_up == ("arm",)


def test_seeds_that_are_left_out_after_their_results_are_named() -> None:
    later = plan("later", "02T09:30", seeds=[0, 1])
    assert register(later, [FIRST, later], runs(3, NOON_FIRST)).dropped == (2,)


def test_seeds_added_after_a_verdict_could_be_seen_are_a_look() -> None:
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4])
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert [seeds for _, seeds in found.additions] == [(0, 1, 2)]
    assert (found.most, found.planned_looks) == (5, False)


def test_planned_looks_are_no_change() -> None:
    first = plan("first", "01T10:00", until_decided=20)
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4], until_decided=20)
    found = register(later, [first, later], runs(3, NOON_FIRST))
    assert (found.most, found.planned_looks, found.changes) == (20, True, ())
    assert found.fixed_before


def test_more_seeds_than_the_looks_were_planned_for_are_a_change_and_bring_no_new_risk() -> None:
    first = plan("first", "01T10:00", until_decided=3)
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4], until_decided=5)
    found = register(later, [first, later], runs(3, NOON_FIRST))
    assert (found.most, [change.what for change in found.changes]) == (3, ["most seeds"])


def test_looks_that_were_not_planned_at_first_are_a_change() -> None:
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4], until_decided=20)
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert not found.planned_looks
    assert {change.what for change in found.changes} == {"seeds", "most seeds"}


def test_plans_that_were_all_made_beforehand_cannot_be_chosen_from_afterwards() -> None:
    """Both margins were recorded before the first result; the one in force then counts."""
    wide = plan("wide", "01T10:30", compare=compared("20%"))
    again = {**FIRST, "recorded": "2026-11-02T10:00:00Z", "known": 6}
    found = register(again, [FIRST, wide, again], runs(3, NOON_FIRST))
    assert (found.compare["margin"], found.overruled) == ("20%", ("margin",))
    assert found.recorded == "2026-11-01T10:00:00Z"


def test_without_the_planned_reference_the_margin_stays_and_nothing_is_shown() -> None:
    arms = {"other": FIRST["arms"]["baseline"], "arm": FIRST["arms"]["arm"]}
    later = plan("later", "02T09:30", arms=arms, compare=compared("9%", to="other"))
    found = register(later, [FIRST, later], runs(3, NOON_FIRST))
    assert (found.compare["margin"], found.compare["to"], found.reference_gone) == ("1%", "other", "baseline")


def test_renamed_arms_with_other_seeds_are_no_fresh_draw() -> None:
    arms = {f"{name}-2": arm for name, arm in FIRST["arms"].items()}
    later = plan("later", "02T09:30", arms=arms, seeds=[10, 11, 12], compare=compared(to="baseline-2"))
    assert register(later, [FIRST, later], runs(3, NOON_FIRST)).dropped == (0, 1, 2)


def test_every_form_of_an_arm_counts() -> None:
    forms = [FIRST]
    for place in range(1, 5):
        arms = copy.deepcopy(FIRST["arms"])
        arms["arm"]["methods"] = [{"focal": {"gamma": place}}]
        forms.append(plan(f"p{place}", f"0{place + 1}T09:30", known=6, arms=arms))
    found = register(forms[-1], forms, runs(3, NOON_FIRST))
    assert found.given_up == ("arm", "arm (form 2)", "arm (form 3)", "arm (form 4)")


def test_fewer_seeds_than_were_planned_are_an_early_look() -> None:
    """Twenty were planned; whoever stops at five because it looks good must be surer."""
    first = plan("first", "01T10:00", seeds=list(range(20)))
    later = plan("later", "02T09:30", seeds=list(range(5)))
    assert register(later, [first, later], runs(5, NOON_FIRST)).most == 20


def test_fewer_seeds_before_anything_ran_are_the_plan() -> None:
    first = plan("first", "01T09:00", seeds=list(range(20)))
    assert register(FIRST, [first, FIRST], runs(3, NOON_FIRST)).most == 3


def test_looks_may_be_planned_as_long_as_nothing_is_known(tmp_path: Path) -> None:
    """A study that was begun and stopped before its first result."""
    made = make_study(tmp_path, {name: ArmSpec([None] * 3) for name in ARMS})
    newest = read_sealed(tmp_path / STUDY / "study.json")
    write_study(tmp_path / STUDY, {**newest, "until_decided": 20})
    found = made.results().registration
    assert (found.planned_looks, found.most) == (True, 20)


def test_an_arm_may_change_in_two_ways_at_once() -> None:
    arms = copy.deepcopy(FIRST["arms"])
    arms["arm"] |= {"train": {"lr": 3e-4}, "primary": "fast"}
    first = copy.deepcopy(FIRST)
    first["arms"]["arm"]["primary"] = "baseline"
    found = register(plan("later", "02T09:30", arms=arms), [first, plan("later", "02T09:30", arms=arms)], [])
    assert {change.what for change in found.changes} == {"lr of arm arm", "what arm arm is compared with"}


def test_a_plan_that_came_after_the_results_was_not_before_the_first_run(tmp_path: Path) -> None:
    """As where runs of other folders are joined."""
    found = register(plan("first", "02T10:00"), [plan("first", "02T10:00")], runs(3, NOON_FIRST))
    assert (found.known_before, found.fixed_before) == (6, False)
    assert "before the first run; nothing was changed since" in str(make_study(tmp_path, ARMS).results().verdict())


def test_a_plan_that_is_gone_is_missed() -> None:
    found = register(FIRST, [FIRST], [KnownRun("arm", 0, NOON_FIRST, "another")])
    assert found.missing == ("another",)
    assert not found.fixed_before


# What it does to a report.

ARMS = {
    "baseline": ArmSpec([320, 322, 318, 321, 319]),
    "arm": ArmSpec([300, 302, 297, 301, 298], methods=[{"focal": {"gamma": 2.0}}]),
}


def change_plan(made: MadeLedger, reanalysed: bool = False, **changes: Any) -> None:
    home = made.runs / STUDY
    newest = read_sealed(home / "study.json")
    write_study(home, {**newest, "plan": "fedcba9876543210", **changes}, reanalysed)


def plan_three_first(home: Path) -> None:
    """As if three seeds had been planned, and the others added when those were done."""
    newest = read_sealed(home / "study.json")
    for file in (*(home / "plans").iterdir(), home / "history.json"):
        file.unlink()
    runs = [run for run in newest["runs"] if run["seed"] < 3]
    write_study(home, {**newest, "plan": "a" * 16, "seeds": [0, 1, 2], "runs": runs})
    write_study(home, newest)


def test_a_margin_that_is_widened_after_the_fact_turns_no_verdict(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS, margin="0.5%")
    before = made.results().verdict().words["arm"]
    change_plan(made, compare={"to": "baseline", "margin": "10%", "confidence": 0.95})
    after = made.results().verdict()
    assert (before, after.words["arm"]) == ("inferior", "inferior")
    assert "margin changed from 0.5% to 10%" in str(after)
    assert "changed-after-results" in {caution.code for caution in after.cautions}
    change_plan(made, reanalysed=True, compare={"to": "baseline", "margin": "10%", "confidence": 0.95})
    again = made.results().verdict()
    assert again.words["arm"] == "equivalent"
    assert "reanalysed" in {caution.code for caution in again.cautions}


def test_seeds_that_were_left_out_leave_no_verdict(tmp_path: Path) -> None:
    far = {**ARMS, "arm": ArmSpec([220, 222, 217, 221, 218], methods=[{"focal": {"gamma": 2.0}}])}
    made = make_study(tmp_path, far)
    newest = read_sealed(tmp_path / STUDY / "study.json")
    assert made.results().verdict().words["arm"] == "worse"
    change_plan(made, seeds=[0, 1, 2], runs=[run for run in newest["runs"] if run["seed"] < 3])
    found = made.results().verdict()
    assert found.words["arm"] == "not shown"
    assert "seeds 3, 4 had results and were left out of the newest plan" in str(found).lower()


def test_a_damaged_record_of_a_plan_is_left_to_verify(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS)
    (tmp_path / STUDY / "plans" / "x.json").write_text("{}")
    assert isinstance(made.results().registration, StudyRegistration)


def test_returning_to_the_first_plan_is_on_record_too(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS, margin="0.5%")
    first = read_sealed(tmp_path / STUDY / "study.json")
    change_plan(made, compare={"to": "baseline", "margin": "10%", "confidence": 0.95})
    write_study(tmp_path / STUDY, first)
    found = made.results().registration
    assert found.compare["margin"] == "0.5%"
    assert [(change.before, change.after) for change in found.changes] == [("0.5%", "10%"), ("10%", "0.5%")]


def test_a_new_analysis_takes_results(tmp_path: Path) -> None:
    """Before there are any, it is simply the plan."""
    made = make_study(tmp_path / "a", {name: ArmSpec([None] * 3) for name in ARMS})
    newest = read_sealed(made.runs / STUDY / "study.json")
    write_study(made.runs / STUDY, newest, reanalysed=True)
    assert made.results().registration.reanalysed is None


def test_seeds_that_were_added_get_what_is_left_of_the_risk(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS)
    plan_three_first(tmp_path / STUDY)
    found = made.results().comparisons[0]
    assert found.looks == (3,)
    assert found.verdict.p is not None
    assert found.verdict.p > 5 * (found.found.p or 1)


def test_what_later_seeds_do_not_bear_out_is_not_said(tmp_path: Path) -> None:
    """Better at three seeds, nothing at eight."""
    right = {"baseline": [300, 303, 298, 301, 299, 302, 300, 301], "arm": [330, 333, 328, 290, 289, 291, 288, 290]}
    made = make_study(
        tmp_path, {name: ArmSpec(r, methods=[{"fgm": {}}] * (name == "arm")) for name, r in right.items()}
    )
    plan_three_first(tmp_path / STUDY)
    results = made.results()
    (pair,) = results.comparisons
    early = ArmPair(results, "arm", "baseline").difference({0, 1, 2})
    assert early.p is not None
    assert early.p < 0.05, "it was better then"
    assert (pair.looks, pair.verdict.word) == ((3,), "not separable")


def test_a_study_without_its_history_says_so_first(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS)
    for file in (*(tmp_path / STUDY / "plans").iterdir(), tmp_path / STUDY / "history.json"):
        file.unlink()
    found = made.results().verdict()
    assert found.design[0] == "There is no record of when this study was planned."
    assert found.cautions[0].code == "no-registration"


def test_tuning_again_is_dated_even_where_the_choice_stays_the_same() -> None:
    record = {"trials": 4, "space": {"lr": [1e-4, 1e-3]}, "seeds": [9], "plan": "t1", "fields": ["lr"], "arms": {}}
    first = plan("first", "01T10:00", tuning=record)
    for changed in (record | {"plan": "t2", "seeds": [9, 10]}, None):
        later = plan("later", "02T09:30", **({"tuning": changed} if changed else {}))
        (found,) = register(later, [first, later], runs(3, NOON_FIRST)).changes
        assert "tuning changed from 4 trials of lr, n = 1 (t1) to" in str(found)
