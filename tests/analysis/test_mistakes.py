"""Confusions, shares with their intervals, and bands of lengths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairtune.analysis.mistakes import Answers, confusion, length_bands, share_of, together, wilson


def answers(predicted: list[list[int]], labels: list[int]) -> Answers:
    found = np.array(predicted)
    return Answers(tuple(f"t{i}" for i in range(len(labels))), np.array(labels), found, np.full(found.shape, 0.9))


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 1), (37, 50), (950, 976)])
def test_wilson_is_that_of_scipy(right: int, n: int) -> None:
    for level in (0.9, 0.95):
        known = stats.binomtest(right, n).proportion_ci(level, method="wilson")
        assert wilson(right / n, n, level) == pytest.approx((known.low, known.high), abs=1e-12)


def test_more_runs_make_no_more_examples() -> None:
    one, three = answers([[0, 1, 1, 0]], [0, 1, 0, 0]), answers([[0, 1, 1, 0]] * 3, [0, 1, 0, 0])
    everything = np.ones(4, dtype=bool)
    assert share_of(one, everything, 0.95) == share_of(three, everything, 0.95)
    assert share_of(one, everything, 0.95).value == 0.75


def test_confusion_is_a_mean_over_runs_with_true_classes_as_rows() -> None:
    found = confusion(answers([[0, 2, 2], [1, 2, 0]], [0, 2, 2]), 3)
    assert found.tolist() == [[0.5, 0.5, 0], [0, 0, 0], [0.5, 0, 1.5]]


def test_runs_of_several_arms_are_put_together() -> None:
    both = together([answers([[0, 1]], [0, 0]), answers([[1, 1], [0, 0]], [0, 0])])
    assert both.runs == 3
    assert both.share_right.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_bands_cover_every_length_once_and_are_about_equal() -> None:
    tokens = np.random.default_rng(0).poisson(20, 1000) + 3
    bands = length_bands(tokens)
    assert len(bands) == 4
    assert [sum(first <= t <= last for first, last in bands) for t in tokens.tolist()] == [1] * 1000
    assert all(150 < ((tokens >= first) & (tokens <= last)).sum() < 350 for first, last in bands)
    assert length_bands(np.array([7, 7, 7])) == [(7, 7)]
