"""Verdicts: no more than the evidence supports."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from fairtune.analysis.statistics import PairedDifference, no_difference
from fairtune.analysis.verdicts import Verdict, judge


def made(difference: float, error: float, n: int = 5, confidence: float = 0.95) -> PairedDifference:
    """A difference with a standard error that comes from seeds alone."""
    df = n - 1
    half = float(stats.t.ppf(0.5 + confidence / 2, df)) * error
    p = float(2 * stats.t.sf(abs(difference) / error, df))
    return PairedDifference(n, difference, difference - half, difference + half, p, error**2, error**2, df, confidence)


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
        (made(-0.001, 0.002), 0.01, "not inferior"),
        (made(0.001, 0.002), 0.01, "not inferior"),
        (made(-0.004, 0.0005), 0.01, "not inferior"),
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
    assert [judge([f], 0.1, 0.95)[0].word for f in (beyond, within)] == ["inferior", "not inferior"]
    short = [made(-0.1 - sign * (critical - 1e-6), 0.01) for sign in (1, -1)]
    assert [judge([f], 0.1, 0.95)[0].word for f in short] == ["worse", "worse"]


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
    assert "corrected for the number of comparisons" in together[0].note


def test_many_claims_of_no_loss_need_stronger_evidence_too() -> None:
    near = made(-0.001, 0.0028)
    assert [v.word for v in judge([near], 0.01, 0.95)] == ["not inferior"]
    assert [v.word for v in judge([near, near, near], 0.01, 0.95)] == ["not separable"] * 3


def test_a_comparison_that_could_not_be_made_costs_the_others_nothing() -> None:
    weak = made(0.03, 0.0093)
    assert [v.word for v in judge([weak, NOTHING, ONE], None, 0.95)] == ["better", "no verdict", "no verdict"]


def test_more_confidence_asks_for_more() -> None:
    found = made(0.03, 0.008)
    assert [judge([found], None, c)[0].word for c in (0.9, 0.999)] == ["better", "not separable"]


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (NOTHING, "no run to compare; two seeds or more are needed"),
        (ONE, "one run only to compare; two seeds or more are needed"),
        (made(0.0001, 0.01), "it takes more test examples"),
    ],
)
def test_the_note_says_what_is_missing(found: PairedDifference, note: str) -> None:
    assert note in judge([found], None, 0.95)[0].note


def test_the_note_counts_the_seeds_that_could_settle_it() -> None:
    verdict = judge([made(0.02, 0.01)], None, 0.95)[0]
    assert verdict.word == "not separable"
    assert verdict.note == "about 3 more seeds could settle it"


def test_a_verdict_reads_as_its_word_and_note() -> None:
    assert str(Verdict("better", 0.01, "")) == "better"
    assert str(Verdict("no verdict", None, "one run only")) == "no verdict (one run only)"
