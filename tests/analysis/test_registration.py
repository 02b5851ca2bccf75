"""The first plan is the registration: what was changed since is said with dates, and changes no verdict by itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, MadeLedger, make_study

from fairtune.analysis.registration import KnownRun, StudyRegistration, register
from fairtune.core.files import read_sealed, write_sealed
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
    assert (found.recorded, found.changes, found.looks, found.dropped) == ("2026-11-01T10:00:00Z", (), (), ())
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
        "seeds": ("0 to 2", "0 to 4"),
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
    assert register(later, [FIRST, later], runs(3, NOON_FIRST)).given_up == ("arm",)
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
    assert (found.looks, found.most, found.planned_looks) == (((0, 1, 2),), 20, False)
    assert found.share is not None


def test_seeds_added_before_anything_was_finished_are_none() -> None:
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4])
    found = register(later, [FIRST, later], runs(3, NOON_FIRST + 10 * 86400))
    assert (found.looks, found.most, found.share) == ((), 5, None)


def test_planned_looks_are_no_change() -> None:
    first = plan("first", "01T10:00", until_decided=20)
    later = plan("later", "02T09:30", seeds=[0, 1, 2, 3, 4], until_decided=20)
    found = register(later, [first, later], runs(3, NOON_FIRST))
    assert (found.looks, found.most, found.planned_looks, found.changes) == (((0, 1, 2),), 20, True, ())
    assert found.fixed_before
    assert found.share is None


def test_fewer_seeds_than_were_planned_are_an_early_look() -> None:
    """Twenty were planned; whoever stops at five because it looks good must be surer."""
    first = plan("first", "01T10:00", seeds=list(range(20)))
    later = plan("later", "02T09:30", seeds=list(range(5)))
    assert register(later, [first, later], runs(5, NOON_FIRST)).most == 20


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


def test_returning_to_the_first_plan_leaves_nothing_to_say_but_that(tmp_path: Path) -> None:
    made = make_study(tmp_path, ARMS, margin="0.5%")
    first = read_sealed(tmp_path / STUDY / "study.json")
    change_plan(made, compare={"to": "baseline", "margin": "10%", "confidence": 0.95})
    write_sealed(tmp_path / STUDY / "study.json", first)
    found = made.results().registration
    assert found.compare["margin"] == "0.5%"
    assert found.changes, "that it was changed meanwhile is on record"
