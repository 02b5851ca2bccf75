"""Verdicts may be taken again and again: the levels are the known ones, and all looks together err as rarely as promised."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy import stats

from fairtune.analysis.looks import LOOKS, MOST, nominal_level, overall_p, repeated_p, spent
from fairtune.analysis.statistics import holm


def test_five_equal_looks_have_the_published_bounds() -> None:
    """O'Brien-Fleming-type spending at 5 % two-sided, as `ldbounds` and the textbooks print it."""
    bounds = [stats.norm.isf(nominal_level([4 * k for k in range(1, n + 1)], 20, 0.05) / 2) for n in range(1, 6)]
    assert bounds == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)


def test_spending_ends_at_the_risk_and_an_early_look_costs_next_to_nothing() -> None:
    shares = spent(LOOKS, MOST, 0.05)
    assert shares == sorted(shares)
    assert shares[0] < 1e-6
    assert shares[-1] == pytest.approx(0.05)
    assert spent([30], 20, 0.05) == pytest.approx([0.05]), "beyond the most there is nothing more to spend"


def test_one_look_at_the_end_is_the_fixed_design() -> None:
    for n in (20, 25):
        assert nominal_level([n], 20, 0.05) == 0.05
        assert overall_p(0.0123, [n], 20) == 0.0123


def test_after_everything_is_spent_nothing_counts() -> None:
    assert nominal_level([5, 20, 24], 20, 0.05) == 0
    assert overall_p(1e-9, [5, 20, 24], 20) == 1
    assert repeated_p([0.5, 0.001, 1e-9], [5, 20, 24], 20) == overall_p(0.001, [5, 20], 20)


@pytest.mark.parametrize("looks", [(3,), LOOKS, (3, 4, 5, 6, 7), (5, 10, 30), (2, 19, 20)])
def test_an_overall_p_undoes_the_level(looks: tuple[int, ...]) -> None:
    for count, risk in itertools.product(range(1, len(looks) + 1), (0.2, 0.05, 0.05 / 7, 0.001)):
        level = nominal_level(looks[:count], MOST, risk)
        assert overall_p(level, looks[:count], MOST) == pytest.approx(risk, rel=1e-3)


def test_levels_grow_with_the_risk_and_overall_p_with_p() -> None:
    risks, ps = np.geomspace(1e-5, 0.4, 12), np.geomspace(1e-12, 1, 40)
    for count in range(1, len(LOOKS) + 1):
        levels = [nominal_level(LOOKS[:count], MOST, risk) for risk in risks]
        assert levels == sorted(levels)
        found = [overall_p(p, LOOKS[:count], MOST) for p in ps]
        assert found == sorted(found)
        assert all(p <= 1.001 * overall <= 1.001 for p, overall in zip(ps[12:], found[12:], strict=True)), (
            "never surer than p says"
        )


def test_a_look_taken_in_between_costs_the_later_ones_something() -> None:
    assert nominal_level([3, 8, 20], 20, 0.05) > nominal_level([3, 8, 12, 16, 20], 20, 0.05)


def test_absurdly_early_looks_are_no_error() -> None:
    assert overall_p(1e-6, [2, 3], 5000) == pytest.approx(1)
    assert nominal_level([2, 3], 100_000, 0.05) < 1e-100


@pytest.mark.parametrize("looks", [(), (5, 5), (5, 3), (0, 3)])
def test_looks_must_increase(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increasing"):
        nominal_level(looks, 20, 0.05)


@pytest.mark.parametrize("looks", [LOOKS, tuple(range(3, 21)), (5, 7, 9)])
def test_all_looks_together_err_no_more_than_promised(looks: tuple[int, ...]) -> None:
    """Random walks without a drift, four of them with Holm, against the naive level at every look."""
    generator, trials = np.random.default_rng(5), 20_000
    steps = generator.standard_normal((trials, 4, looks[-1])).cumsum(axis=2)[:, :, np.array(looks) - 1]
    z = np.abs(steps) / np.sqrt(looks)
    levels = [nominal_level(looks[: k + 1], MOST, 0.05) for k in range(len(looks))]
    wrong = (z[:, 0] > stats.norm.isf(np.array(levels) / 2)).any(axis=1).mean()
    allowed = spent(looks, MOST, 0.05)[-1]
    assert wrong == pytest.approx(allowed, abs=0.005), "one comparison spends just what it may"
    assert (z[:, 0] > 1.96).any(axis=1).mean() > 2 * allowed, "looking without counting does not"
    some = z[:300]
    ps = 2 * stats.norm.sf(some)
    families = (
        [holm([repeated_p(list(arm), looks, MOST) for arm in study]) for study in ps[:, :, :6]]
        if len(looks) < 6
        else []
    )
    assert sum(min(p for p in family if p is not None) < 0.05 for family in families) <= 0.08 * 300


def test_it_is_quick() -> None:
    overall_p(0.01, LOOKS, MOST)
    started = time.perf_counter()
    for p in np.linspace(1e-6, 1, 200):
        overall_p(p, LOOKS, MOST)
    assert time.perf_counter() - started < 0.5
