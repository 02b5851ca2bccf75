"""The fair comparison is the comparison: one per arm, fixed in the plan, corrected as a family, with both intervals."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.report.made_ledger import QK, ArmSpec, make_study

from fairtune.analysis.results import Results
from fairtune.report.sections.comparisons.worth import rank
from fairtune.report.writer import make_content


def demo(runs: Path, n: int = 5) -> Results:
    """As in the demo: everything gains by the learning rate, and nothing by a method."""
    arms = {
        "baseline": ArmSpec([250, 253, 248, 251, 252][:n]),
        "baseline-fast": ArmSpec([282, 284, 279, 281, 283][:n], lr=3e-4),
        "freeze-pretrained": ArmSpec([279, 281, 277, 280, 280][:n], lr=3e-4, methods=QK),
        "alone": ArmSpec([290, 291, 287, 290, 291][:n], lr=5e-4, methods=QK),
    }
    return make_study(runs, arms, margin="1.5%").results()


def test_a_method_gets_no_credit_for_its_learning_rate(tmp_path: Path) -> None:
    results = demo(tmp_path)
    found = {c.arm: c for c in results.comparisons}
    assert {arm: c.reference for arm, c in found.items()} == {
        "baseline-fast": "baseline",
        "freeze-pretrained": "baseline-fast",
        "alone": "baseline",
    }
    assert found["baseline-fast"].verdict.word == "better"
    assert found["baseline-fast"].about == "settings"
    assert found["freeze-pretrained"].verdict.word != "better"
    raw = results.comparison("freeze-pretrained", "baseline")
    assert raw is not None
    assert (raw.role, raw.verdict.word, raw.verdict.p) == ("descriptive", "descriptive", None)
    assert raw.difference == pytest.approx(0.0715, abs=0.001)


def test_without_a_control_and_with_other_settings_nothing_is_shown(tmp_path: Path) -> None:
    results = demo(tmp_path)
    found = results.comparison("alone")
    assert found is not None
    assert found.difference == pytest.approx(0.0975, abs=0.001), "the figure is shown"
    assert (found.verdict.word, found.verdict.p) == ("not shown", None)
    assert found.verdict.note.startswith("method and lr cannot be told apart")
    assert "not shown against baseline" in str(results.verdict())


def test_what_shows_nothing_costs_the_others_nothing(tmp_path: Path) -> None:
    found = {c.arm: c for c in demo(tmp_path).comparisons}
    tested = sorted(c.found.p for c in found.values() if c.verdict.p is not None and c.found.p is not None)
    assert len(tested) == 2
    assert found["baseline-fast"].verdict.p == pytest.approx(2 * tested[0])


def test_everything_that_ranks_uses_the_primary_comparison(tmp_path: Path) -> None:
    results = demo(tmp_path)
    content = make_content(results)
    ranking = content.sections["comparisons"].ranking
    assert [(one.versus.arm, one.versus.reference) for one in ranking][-1] == ("alone", "baseline"), (
        "shows nothing: last"
    )
    freeze = next(one for one in ranking if one.versus.arm == "freeze-pretrained")
    assert freeze.gain is not None
    assert freeze.gain < 0
    assert not freeze.answer.startswith("yes")
    row = next(row for row in content.rows if row.arm == "freeze-pretrained")
    assert row.versus is not None
    assert row.raw is not None
    assert (row.versus.reference, row.raw.reference) == ("baseline-fast", "baseline")
    assert results.table().loc["freeze-pretrained", "against"] == "baseline-fast"
    assert rank([row.versus], "accuracy") == (), "one comparison is no ranking"


def test_the_family_interval_leaves_out_zero_only_with_the_corrected_p(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([300, 303, 298, 301, 302])} | {
        f"arm-{place}": ArmSpec(
            [305 + place, 309, 301 + place, 306, 308], methods=[{"focal": {"gamma": float(place + 1)}}]
        )
        for place in range(5)
    }
    arms["far"] = ArmSpec([350, 352, 348, 351, 350], methods=[{"fgm": {}}])
    comparisons = make_study(tmp_path, arms).results().comparisons
    assert {c.family[0] > 0 for c in comparisons if c.family[0] is not None} == {True, False}, "there is one of each"
    for found in comparisons:
        (low, high), (family_low, family_high) = found.alone, found.family
        assert None not in (low, high, family_low, family_high)
        assert family_low < low < found.difference < high < family_high  # type: ignore[operator]
        assert found.verdict.p is not None
        if family_low > 0 or family_high < 0:  # type: ignore[operator]
            assert found.verdict.p < 0.05


def test_sentences_give_both_intervals(tmp_path: Path) -> None:
    text = str(demo(tmp_path).verdict())
    assert "alone" in text
    assert "among 2 comparisons" in text
    assert "Not a verdict: against baseline, which has another lr, the plain difference is +7.15 points." in text
    assert "this compares settings (lr), not methods" in text


def test_two_seeds_that_are_far_below_are_not_called_not_separable(tmp_path: Path) -> None:
    arms = {"baseline": ArmSpec([350, 352]), "arm": ArmSpec([150, 212], methods=[{"focal": {"gamma": 2.0}}])}
    verdict = make_study(tmp_path, arms).results().comparisons[0].verdict
    assert str(verdict) == "no verdict (too few seeds for a verdict (both seeds 35 points or more below))"


def test_an_unfinished_study_has_to_be_surer(tmp_path: Path) -> None:
    """Three of twenty planned seeds that look well are no reason to stop."""
    right = {"baseline": [300, 303, 298], "arm": [318, 322, 315]}
    whole = {name: ArmSpec(list(r), methods=[{"focal": {"gamma": 2.0}}] * (name == "arm")) for name, r in right.items()}
    part = {
        name: ArmSpec([*r, *[None] * 17], methods=[{"focal": {"gamma": 2.0}}] * (name == "arm"))
        for name, r in right.items()
    }
    done = make_study(tmp_path / "whole", whole).results().comparisons[0]
    early = make_study(tmp_path / "part", part).results().comparisons[0]
    assert done.found.p == early.found.p
    assert done.verdict.p == done.found.p
    assert early.verdict.p is not None
    assert early.verdict.p > 5 * (early.found.p or 1)


def test_planned_comparisons_that_have_no_run_yet_count_in_the_family(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([300, 303, 298]),
        "arm": ArmSpec([318, 322, 315], methods=[{"focal": {"gamma": 2.0}}]),
        "later": ArmSpec([None, None, None], methods=[{"fgm": {}}]),
    }
    found = make_study(tmp_path, arms).results().comparison("arm")
    assert found is not None
    assert found.verdict.p == pytest.approx(2 * (found.found.p or math.nan))


def test_the_share_of_pairs_that_are_better_has_its_n(tmp_path: Path) -> None:
    text = str(demo(tmp_path).verdict())
    assert "A run of it is better than one of baseline in 100 % of 25 pairs of runs (n = 5 each)." in text
