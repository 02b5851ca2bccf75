"""Verdicts: no more than the evidence supports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from fairtune.analysis.statistics import PairedDifference, no_difference
from fairtune.analysis.verdicts import Family, Schedule, Verdict, judge, judge_family


def made(difference: float, error: float, n: int = 5, confidence: float = 0.95) -> PairedDifference:
    """A difference with a standard error that comes from seeds alone."""
    df = n - 1
    half = float(stats.t.ppf(0.5 + confidence / 2, df)) * error
    p = float(2 * stats.t.sf(abs(difference) / error, df))
    return PairedDifference(n, difference, difference - half, difference + half, p, error**2, error**2, df, confidence)


def limited_by_examples() -> PairedDifference:
    """Seeds agree; what is uncertain is which examples were drawn."""
    error, df = 0.01, 16.0
    p = float(2 * stats.t.sf(1.5, df))
    return PairedDifference(5, 0.015, -0.01, 0.04, p, 1e-8, error**2, df, 0.95, units=400)


NOTHING = PairedDifference(0, math.nan, None, None, None, math.nan, math.nan, math.nan, 0.95)
ONE = PairedDifference(1, 0.3, None, None, None, math.nan, math.nan, math.nan, 0.95)


@pytest.mark.parametrize(
    ("found", "margin", "word"),
    [
        (made(0.05, 0.01), None, "better"),
        (made(0.05, 0.01), 0.01, "better"),
        (made(-0.05, 0.01), None, "worse"),
        (made(-0.05, 0.01), 0.01, "inferior"),
        (made(-0.05, 0.01), 0.03, "worse"),
        (made(0.005, 0.01), None, "not separable"),
        (made(-0.001, 0.002), None, "not separable"),
        (made(-0.001, 0.002), 0.01, "equivalent"),
        (made(0.001, 0.002), 0.01, "equivalent"),
        (made(-0.004, 0.0005), 0.01, "equivalent"),
        (made(0.006, 0.004), 0.01, "not inferior"),
        (made(0.004, 0.0005), 0.01, "better"),
        (made(-0.009, 0.002), 0.01, "worse"),
        (made(-0.001, 0.01), 0.01, "not separable"),
        (NOTHING, 0.01, "no verdict"),
        (ONE, 0.01, "no verdict"),
    ],
)
def test_the_word_that_the_evidence_supports(found: PairedDifference, margin: float | None, word: str) -> None:
    assert judge([found], margin, 0.95)[0].word == word


def test_a_loss_within_the_margin_is_not_hidden() -> None:
    assert "lower, but by less than the margin" in str(judge([made(-0.004, 0.0005)], 0.01, 0.95)[0])


def test_a_gain_within_the_margin_is_not_oversold() -> None:
    assert str(judge([made(0.004, 0.0005)], 0.01, 0.95)[0]) == "better (by less than the margin)"
    assert str(judge([made(0.05, 0.01)], 0.01, 0.95)[0]) == "better"


def test_a_loss_that_may_be_within_the_margin_is_worse_and_says_so() -> None:
    verdict = judge([made(-0.05, 0.01)], 0.03, 0.95)[0]
    assert str(verdict) == "worse (not shown to exceed the margin)"
    assert str(judge([made(-0.05, 0.01)], None, 0.95)[0]) == "worse"


@pytest.mark.parametrize("margin", [None, 0.0, 0.01, 0.03])
@pytest.mark.parametrize("difference", [-0.05, -0.02, -0.004, 0.0, 0.01, 0.05])
@pytest.mark.parametrize("error", [0.0005, 0.005, 0.01])
def test_where_lower_is_better_the_mirrored_difference_gets_the_same_word(
    difference: float, error: float, margin: float | None
) -> None:
    higher = judge([made(difference, error)], margin, 0.95)[0]
    lower = judge([made(-difference, error)], margin, 0.95, lower_is_better=True)[0]
    assert (lower.word, lower.p) == (higher.word, higher.p)
    assert lower.note == higher.note.replace("lower", "higher")


def test_inferior_and_not_inferior_are_of_one_risk() -> None:
    critical = float(stats.t.ppf(0.975, 4)) * 0.01
    beyond, within = (made(-0.1 - sign * (critical + 1e-6), 0.01) for sign in (1, -1))
    assert [str(judge([f], 0.1, 0.95)[0]) for f in (beyond, within)] == [
        "inferior",
        "equivalent (lower, but by less than the margin)",
    ]
    short = [made(-0.1 - sign * (critical - 1e-6), 0.01) for sign in (1, -1)]
    assert [judge([f], 0.1, 0.95)[0].word for f in short] == ["worse", "worse"]


def test_equivalence_takes_both_ends_and_no_loss_takes_one() -> None:
    """Two one-sided tests: each end at half the risk, as for non-inferiority."""
    critical = float(stats.t.ppf(0.975, 4)) * 0.01
    inside, outside = (made(0.1 - critical - sign * 1e-6, 0.01) for sign in (1, -1))
    assert [judge([f], 0.1, 0.95)[0].word for f in (inside, outside)] == ["better", "better"]
    assert [judge([f], 0.1, 0.95)[0].note for f in (inside, outside)] == ["by less than the margin", ""]
    wide = float(stats.t.ppf(0.975, 4)) * 0.06
    inside, outside = (made(0.2 - wide - sign * 1e-6, 0.06) for sign in (1, -1))
    assert [judge([f], 0.2, 0.95)[0].word for f in (inside, outside)] == ["equivalent", "not inferior"]


def test_many_claims_of_a_loss_beyond_the_margin_need_stronger_evidence_too() -> None:
    clear = made(-0.14, 0.01)
    assert judge([clear], 0.1, 0.95)[0].word == "inferior"
    assert [v.word for v in judge([clear] * 4, 0.1, 0.95)] == ["worse"] * 4


def test_trouble_is_reported_instead_of_a_verdict() -> None:
    verdict = judge([no_difference(3, 0.95, trouble="the perplexity is not a number")], 0.01, 0.95)[0]
    assert str(verdict) == "no verdict (the perplexity is not a number)"


def test_many_comparisons_need_stronger_evidence() -> None:
    weak = made(0.03, 0.0093)
    assert weak.p is not None
    assert 0.02 < weak.p < 0.05
    assert judge([weak], None, 0.95)[0].word == "better"
    together = judge([weak, weak, weak], None, 0.95)
    assert [v.word for v in together] == ["not separable"] * 3
    assert [v.p for v in together] == [pytest.approx(3 * weak.p)] * 3
    assert together[0].note.startswith("leans better, not shown; "), "what it is alone, and that this is not enough"
    down = judge([made(-0.03, 0.0093)] * 3, None, 0.95)
    assert down[0].note.startswith("leans worse, not shown; ")
    assert "leans" not in judge([made(0.02, 0.01)] * 3, None, 0.95)[0].note, "alone it shows nothing either"


@pytest.mark.parametrize("lower_is_better", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("difference", [-0.04, 0.02, 0.03, 0.045, 0.07])
def test_the_family_interval_leaves_out_zero_only_where_the_corrected_p_is_small(
    difference: float, size: int, lower_is_better: bool
) -> None:
    found = [made(difference, 0.0093), *[made(0.001, 0.01)] * (size - 1)]
    verdict = judge(found, None, 0.95, lower_is_better)[0]
    low, high = verdict.family
    assert low is not None
    assert high is not None
    assert verdict.p is not None
    assert low < difference < high, "in the direction of the difference, whichever is better"
    assert (low > 0 or high < 0) == (verdict.p < 0.05)
    assert (high - low) >= (found[0].high or 0) - (found[0].low or 0) - 1e-12
    if size == 1:
        assert (low, high) == (pytest.approx(found[0].low), pytest.approx(found[0].high)), "alone is alone"


def test_many_claims_of_no_loss_need_stronger_evidence_too() -> None:
    near = made(-0.001, 0.0028)
    assert [v.word for v in judge([near], 0.01, 0.95)] == ["equivalent"]
    assert [v.word for v in judge([near, near, near], 0.01, 0.95)] == ["not separable"] * 3


def test_a_comparison_that_could_not_be_made_costs_the_others_nothing_unless_it_is_counted() -> None:
    weak = made(0.03, 0.0093)
    assert [v.word for v in judge([weak, NOTHING, ONE], None, 0.95)] == ["better", "no verdict", "no verdict"]
    planned = judge_family([weak, NOTHING, ONE], None, Family(0.95, others=2))
    assert [v.word for v in planned] == ["not separable", "no verdict", "no verdict"], "planned, so part of the family"
    assert weak.p is not None
    assert planned[0].p == pytest.approx(3 * weak.p)


def test_more_confidence_asks_for_more() -> None:
    found = made(0.03, 0.008)
    assert [judge([found], None, c)[0].word for c in (0.9, 0.999)] == ["better", "not separable"]


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (NOTHING, "no run to compare; two seeds or more are needed"),
        (ONE, "one run only to compare; two seeds or more are needed"),
        (made(0.0001, 0.01), "the difference is near zero; state a margin"),
        (limited_by_examples(), "it takes more test examples (about "),
    ],
)
def test_the_note_says_what_is_missing(found: PairedDifference, note: str) -> None:
    assert note in judge([found], None, 0.95)[0].note


def test_the_note_counts_the_seeds_that_could_settle_it() -> None:
    verdict = judge([made(0.02, 0.01)], None, 0.95)[0]
    assert verdict.word == "not separable"
    low, high = verdict.needed or (0, 0)
    assert 5 < low <= high
    assert verdict.note == f"a new study, planned with {low} to {high} seeds, could settle it", (
        "this one has spent its risk"
    )
    planned = Family(0.95, schedules=[Schedule((5,), 20)])
    verdict = judge_family([made(0.025, 0.01)], None, planned)[0]
    low, high = verdict.needed or (0, 0)
    assert 5 < low <= high
    assert verdict.note == f"{low - 5} to {high - 5} more seeds could settle it", (
        "looks were planned, so seeds can be added"
    )


def test_a_look_before_the_last_has_to_be_surer() -> None:
    clear = made(0.035, 0.01)
    assert clear.p is not None
    assert clear.p < 0.05
    early = judge_family([clear], None, Family(0.95, schedules=[Schedule((5,), 20)]))[0]
    assert early.word == "not separable"
    assert early.p is not None
    assert early.p > 0.05
    low, high = early.family
    assert low is not None
    assert high is not None
    assert low < 0 < high
    assert judge_family([clear], None, Family(0.95, schedules=[Schedule((5,), 5)]))[0].word == "better"


@pytest.mark.parametrize(
    ("by_seed", "metric", "lower_is_better", "text"),
    [
        ((-0.4675, -0.45), "accuracy", False, "both seeds 45 points or more below"),
        ((0.052, 0.011), "accuracy", False, "both seeds 1.1 points or more above"),
        ((0.02, -0.01), "accuracy", False, "one seed above, one below"),
        ((0.0, 0.0), "accuracy", False, "no difference in either seed"),
        ((0.02, 0.0), "accuracy", False, "no difference in one of the seeds"),
        ((math.log(1.3), math.log(1.2)), "perplexity", True, "both seeds 20 % or more above"),
        ((math.log(0.7), math.log(0.8)), "perplexity", True, "both seeds 20 % or more below"),
        ((-0.3, -0.25), "loss", True, "both seeds 0.25 or more below"),
    ],
)
def test_two_seeds_are_too_few_and_the_note_says_what_they_show(
    by_seed: tuple[float, float], metric: str, lower_is_better: bool, text: str
) -> None:
    difference = sum(by_seed) / 2
    found = replace(made(difference, 1.0, n=2), by_seed=by_seed)
    verdict = judge_family([found], None, Family(0.95, metric, lower_is_better))[0]
    assert str(verdict) == f"no verdict (too few seeds for a verdict ({text}))"


def test_a_verdict_reads_as_its_word_and_note() -> None:
    assert str(Verdict("better", 0.01, "")) == "better"
    assert str(Verdict("no verdict", None, "one run only")) == "no verdict (one run only)"
