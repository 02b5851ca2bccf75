"""Simple baselines in verdicts: a family of their own, and a caution at the head where the reference does not beat them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.made_ledger import ArmSpec, make_study

from fairtune.analysis.results import Results
from fairtune.core.cautions import Caution
from fairtune.report.terminal import verdict_table
from fairtune.report.writer import make_content

FOCAL = [{"focal": {"gamma": 2.0}}]
ARMS = {
    "tfidf": ArmSpec([300] * 4, learner="tfidf"),
    "baseline": ArmSpec([336, 338, 334, 337]),
    "majority": ArmSpec([200] * 4, learner="majority"),
    "focal": ArmSpec([343, 341, 344, 340], methods=FOCAL),
}


def results_of(folder: Path, **changes: Any) -> Results:
    arms = {name: changes.get(name.replace("-", "_"), spec) for name, spec in ARMS.items()}
    arms |= {name: spec for name, spec in changes.items() if name not in arms}
    arms = {"baseline": arms.pop("baseline"), **arms}  # the first is what others are compared to
    return make_study(folder, {name: spec for name, spec in arms.items() if spec is not None}, margin="1.5%").results()


def told(results: Results) -> list[Caution]:
    return [caution for caution in results.cautions if caution.code == "not-above-baseline"]


def test_simple_baselines_are_a_family_of_their_own(tmp_path: Path) -> None:
    """However many there are, what is said of a method stays the same."""
    without = results_of(tmp_path / "without", tfidf=None, majority=None)
    beside = results_of(tmp_path / "beside")
    ours, theirs = (results.comparison("focal") for results in (without, beside))
    assert ours is not None
    assert theirs is not None
    assert (theirs.verdict, theirs.role) == (ours.verdict, "primary")
    simple = [c for c in beside.comparisons if c.role == "simple baseline"]
    assert [c.arm for c in simple] == ["tfidf", "majority"]
    assert {(c.reference, c.about, c.confounds) for c in simple} == {("baseline", "learning", ())}
    assert [c.verdict.word for c in simple] == ["inferior", "inferior"]
    verdict = beside.verdict()
    assert "1 primary comparison;" in verdict.design[1]
    assert "2 comparisons with simple baselines are judged apart" in verdict.design[2]
    assert "among 2 simple baselines" in next(f.text for f in verdict.findings if f.arm == "tfidf")


def test_they_come_after_the_others_and_are_not_ranked_among_methods(tmp_path: Path) -> None:
    results = results_of(tmp_path, second=ArmSpec([330, 331, 332, 333], methods=[{"rdrop": {}}]))
    assert results.arms == ["baseline", "focal", "second", "tfidf", "majority"]
    content = make_content(results)
    assert [row.arm for row in content.rows] == results.arms
    assert {one.versus.arm for one in content.sections["comparisons"].ranking} == {"focal", "second"}
    assert [one.arm for one in content.sections["baselines"]] == ["tfidf", "majority"]
    (tfidf,) = [row for row in content.rows if row.arm == "tfidf"]
    assert (tfidf.step_seconds, tfidf.peak_memory, tfidf.trainable_share) == (None, None, None)


def test_nothing_is_said_where_the_reference_beats_them(tmp_path: Path) -> None:
    assert told(results_of(tmp_path)) == []


@pytest.mark.parametrize(
    ("right", "seen", "why"),
    [
        (352, "baseline is worse than tfidf (+3.94 points for tfidf, ", "is better, in seconds"),
        (337, "baseline does not beat tfidf (+0.19 points for tfidf, ", "as far as these runs can tell, in seconds"),
        (333, "baseline is not shown to beat tfidf (−0.81 points for tfidf, ", "may be as good, in seconds"),
    ],
)
def test_the_head_says_by_how_much_the_reference_does_not_beat_one(
    right: int, seen: str, why: str, tmp_path: Path
) -> None:
    results = results_of(tmp_path, tfidf=replace(ARMS["tfidf"], right=[right] * 4))
    (caution,) = told(results)
    assert caution.grade == "warning"
    assert caution.seen.startswith(seen)
    assert caution.seen.endswith(", n = 4)")
    assert "word and character n-grams with logistic regression (tfidf)" in caution.why
    assert caution.why.endswith(why)
    assert caution in results.verdict().cautions[:1], "it comes first"
    assert "not-above-baseline" in str(results.verdict().as_json())
    assert make_content(results).sections["findings"].cautions[0] == caution
    assert verdict_table(results)


def test_several_are_told_of_in_one_sentence_and_the_best_is_named(tmp_path: Path) -> None:
    probe = ArmSpec([341] * 4, learner="linear-probe")
    results = results_of(tmp_path, tfidf=replace(ARMS["tfidf"], right=[338] * 4), probe=probe)
    (caution,) = told(results)
    assert "does not beat tfidf (" in caution.seen
    assert " or probe (" in caution.seen
    assert "a frozen encoder with logistic regression (probe)" in caution.why


def test_the_most_frequent_class_has_not_failed_to_learn(tmp_path: Path) -> None:
    results = results_of(tmp_path)
    assert results.collapses == {}
    majority = results.comparison("majority")
    assert majority is not None
    assert majority.without_collapsed is None
    assert not {"collapsed", "not-learned"} & {caution.code for caution in results.cautions}


def test_everything_can_be_compared_with_one(tmp_path: Path) -> None:
    arms = {"probe": ArmSpec([300] * 4, learner="linear-probe"), "plain": ARMS["baseline"], "focal": ARMS["focal"],
            "majority": ARMS["majority"]}  # fmt: skip
    results = make_study(tmp_path, arms).results()
    assert [(c.arm, c.reference, c.role) for c in results.comparisons] == [
        ("plain", "probe", "simple baseline"), ("focal", "plain", "primary"), ("majority", "probe", "simple baseline"),
    ]  # fmt: skip
    plain = results.comparison("plain")
    assert plain is not None
    assert (plain.verdict.word, plain.confounds) == ("better", ())
    assert told(results) == []
    assert results.arms[0] == "probe"
    assert make_content(results).rows[0].learner == "linear-probe"


def test_seeds_are_not_added_for_their_sake(tmp_path: Path) -> None:
    """A simple baseline that is level with the reference would never be told apart from it."""
    results = results_of(
        tmp_path,
        tfidf=replace(ARMS["tfidf"], right=[336] * 4),
        focal=replace(ARMS["focal"], right=[390, 391, 392, 390]),
    )
    assert results.verdict().words["tfidf"] not in ("better", "worse")
    assert results.verdict().settled


def test_one_that_was_given_up_still_counts_among_them(tmp_path: Path) -> None:
    from fairtune.ledger.studies import read_study, write_study

    made = make_study(tmp_path, {"baseline": ARMS["baseline"], **ARMS})
    plan = read_study(tmp_path / "made")
    arms = {arm: facts for arm, facts in plan["arms"].items() if arm != "majority"}
    runs = [run for run in plan["runs"] if run["arm"] != "majority"]
    write_study(tmp_path / "made", {**plan, "arms": arms, "runs": runs, "plan": "1" * 16})
    results = made.results()
    assert results.registration.given_up == ()
    assert results.registration.given_up_learners == ("majority",)
    assert "2 comparisons with simple baselines" in results.verdict().design[-1]
    said = results.verdict().opening
    assert "the newest plan does not have majority, which had results" in said, "the first lines say what was taken out"
