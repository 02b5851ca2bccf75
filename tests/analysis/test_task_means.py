"""Means over tasks: formulas worked by hand, and what few tasks, scatter and one good task of three come to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairtune.analysis.run_profiles import interquartile_mean, profile_runs
from fairtune.analysis.statistics import PairedDifference
from fairtune.analysis.task_means import (
    TaskDifference,
    chance_of_improvement,
    mean_improvement,
    mean_over_tasks,
    mean_variance,
    task_difference,
    tasks_needed,
)


def tasks(*differences: float, variance: float = 0.0) -> list[TaskDifference]:
    return [TaskDifference(f"t{place}", value, variance) for place, value in enumerate(differences)]


def cell(difference: float, variance: float) -> PairedDifference:
    return PairedDifference(4, difference, 0, 0, 0.5, variance, variance, 3, 0.95)


def test_scatter_of_tasks_gives_students_interval_with_one_degree_less_than_tasks() -> None:
    """Differences 1, 2, 3: mean 2, sd 1, standard error 1 / sqrt(3) = .57735; t of 2 degrees at 97.5 % is 4.30265."""
    found = mean_over_tasks(tasks(1, 2, 3), 0.95)
    assert (found.n, found.difference, found.df) == (3, 2.0, 2.0)
    assert found.low == pytest.approx(2 - 4.302653 * 0.5773503, abs=1e-5)
    assert found.high == pytest.approx(2 + 4.302653 * 0.5773503, abs=1e-5)
    assert found.p == pytest.approx(0.0741799, abs=1e-6), "t = 3.4641 with 2 degrees of freedom"


def test_tasks_that_agree_by_chance_are_no_surer_than_seeds_and_examples_allow() -> None:
    """Three equal differences have no scatter; each has variance .09, so the mean has .27 / 9 = .03."""
    found = mean_over_tasks(tasks(1, 1, 1, variance=0.09), 0.95)
    assert mean_variance(tasks(1, 1, 1, variance=0.09)) == pytest.approx((0.0, 0.03))
    assert found.total_variance == pytest.approx(0.03)
    assert found.high == pytest.approx(1 + 4.302653 * math.sqrt(0.03), abs=1e-5)


def test_the_larger_of_both_variances_counts() -> None:
    """Scatter 1 / 3, luck .03: what the tasks show is the larger, and holds their luck already."""
    assert mean_over_tasks(tasks(1, 2, 3, variance=0.09), 0.95).total_variance == pytest.approx(1 / 3)


def test_models_of_one_task_are_averaged_and_share_their_luck() -> None:
    found = task_difference("sst2", [cell(1.0, 0.04), cell(3.0, 0.16)])
    assert (found.difference, found.cells) == (2.0, 2)
    assert found.variance == pytest.approx(0.3**2), (
        "standard deviations .2 and .4 are averaged, not divided by the root of two"
    )


def test_fewer_tasks_than_needed_have_a_mean_and_nothing_else() -> None:
    found = mean_over_tasks(tasks(1, 2), 0.95, fewest=3)
    assert (found.difference, found.low, found.p) == (1.5, None, None)
    assert math.isnan(mean_over_tasks([], 0.95).difference)


def test_one_good_task_of_three_is_never_shown() -> None:
    """A gain on one task only is as large as its own standard error: t is 1 however large it is."""
    for gain in (1.0, 10.0, 1000.0):
        found = mean_over_tasks(tasks(gain, 0, 0), 0.95)
        assert found.p == pytest.approx(0.4226497, abs=1e-6)


def test_no_interval_leaves_what_the_metric_can_be() -> None:
    found = mean_over_tasks(tasks(0.9, -0.8, 0.7), 0.95, (-1.0, 1.0))
    assert (found.low, found.high) == (-1.0, 1.0)


def test_how_many_tasks_would_show_it() -> None:
    found = mean_over_tasks(tasks(1, 2, 3), 0.95)
    assert tasks_needed(found, 0.05) == 5, "(2.776 + .941) * sqrt(1 / 5) = 1.66 is below 2, with four tasks it is 2.08"
    assert tasks_needed(mean_over_tasks(tasks(1, -1, 0.01), 0.95), 0.05) is None


def test_chance_of_improvement_counts_pairs_and_ties_as_half() -> None:
    """(3, 1) against (2, 1): 3 beats both, 1 loses to 2 and ties with 1: (2 + .5) / 4."""
    assert chance_of_improvement(np.array([3.0, 1.0]), np.array([2.0, 1.0])) == pytest.approx(0.625)


def test_improvement_is_the_mean_of_tasks_whose_models_are_averaged_first() -> None:
    sure, even = ((2.0, 3.0), (0.0, 1.0)), ((0.0, 1.0), (0.0, 1.0))
    found = mean_improvement([[sure, even], [even]], 0.95)
    assert found is not None
    assert found.mean == pytest.approx(((1 + 0.5) / 2 + 0.5) / 2)
    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found == mean_improvement([[sure, even], [even]], 0.95), "same draws every time"
    assert mean_improvement([], 0.95) is None
    assert mean_improvement([[((), (1.0,))]], 0.95) is None


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    values = np.array([8.0, 1, 2, 3, 4, 5, 6, 700])
    assert interquartile_mean(values, np.ones(8)) == pytest.approx((3 + 4 + 5 + 6) / 4)


def test_values_on_a_quartile_count_in_part() -> None:
    """Of five values, a quarter is 1.25: of the second and the fourth .75 each are inside."""
    assert interquartile_mean(np.array([0.0, 1, 2, 4, 100]), np.ones(5)) == pytest.approx(
        (0.75 * 1 + 2 + 0.75 * 4) / 2.5
    )


def test_weights_stand_for_repeated_values() -> None:
    once = interquartile_mean(np.array([0.0, 1, 2, 9]), np.array([1.0, 2, 1, 4]))
    assert once == pytest.approx(interquartile_mean(np.array([0.0, 1, 1, 2, 9, 9, 9, 9]), np.ones(8)))


def test_a_profile_says_which_share_of_runs_gains_more() -> None:
    cells = [[((1.0, 3.0), (0.0, 0.0))] for _ in range(5)]
    found = profile_runs(cells, 0.95)
    assert found is not None
    assert found.iqm == pytest.approx(2.0)
    shares = dict(zip(found.at, found.share, strict=True))
    assert found.share[0] == pytest.approx(1.0)
    assert found.share[-1] == 0
    assert all(share == pytest.approx(0.5) for at, share in shares.items() if 1 < at < 3)
    assert all(
        low <= share + 1e-9 and share <= high + 1e-9
        for low, share, high in zip(found.share_low, found.share, found.share_high, strict=True)
    )


def test_a_task_counts_once_however_many_runs_and_models_it_has() -> None:
    single, many = [((0.0,), (0.0,))], [((4.0,) * 8, (0.0,)), ((4.0,) * 3, (0.0,))]
    found = profile_runs([single, single, single, single, many], 0.95)
    assert found is not None
    between = [share for at, share in zip(found.at, found.share, strict=True) if 0 < at < 4]
    assert all(share == pytest.approx(0.2) for share in between)


def test_profiles_take_five_tasks() -> None:
    assert profile_runs([[((1.0,), (0.0,))]] * 4, 0.95) is None
