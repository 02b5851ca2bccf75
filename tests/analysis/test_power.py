"""Power on paper agrees with what the product's own comparison shows, and advice about seeds is kept when it is followed."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import stats

from fairtune.analysis import statistics
from fairtune.analysis.arm_pairs import Comparison
from fairtune.analysis.looks import LOOKS, nominal_level
from fairtune.analysis.missing_runs import count_missing, stand_in
from fairtune.analysis.power import (
    EXAMPLES,
    MANY,
    MARGIN,
    SEEDS,
    Noise,
    Outlook,
    chance_to_show,
    detectable,
    expected_noise,
    level_after,
    measured_noise,
    seeds_to_confirm,
    seeds_to_settle,
)
from fairtune.analysis.power_sentences import describe_outlook, describe_power
from fairtune.analysis.resampling import Classified, bootstrap_variance
from fairtune.analysis.sentences import share_text
from fairtune.analysis.statistics import PairedDifference, freedom, paired_difference
from fairtune.analysis.verdicts import Verdict

FIVE = 0.05


def found_from(by_seed: np.ndarray, examples: float = 0.0) -> PairedDifference:
    """A comparison with a known share of examples; the seeds' as found."""
    n, difference = len(by_seed), float(np.mean(by_seed))
    seeds = float(np.var(by_seed, ddof=1)) / n
    total, df = seeds + examples, freedom(n, seeds, seeds + examples)
    half = float(stats.t.ppf(0.975, df)) * math.sqrt(total)
    p = float(2 * stats.t.sf(abs(difference) / math.sqrt(total), df))
    low, high = difference - half, difference + half
    return PairedDifference(n, difference, low, high, p, seeds, total, df, 0.95, by_seed=tuple(by_seed.tolist()))


def draw(generator: np.random.Generator, noise: Noise, n: int, difference: float) -> np.ndarray:
    luck = math.sqrt(noise.examples) * generator.standard_normal()
    return difference + luck + math.sqrt(noise.one_seed) * generator.standard_normal(n)


@pytest.mark.parametrize("examples", [0.0, 2e-5])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_chance_on_paper_is_the_share_of_simulated_comparisons(n: int, examples: float) -> None:
    generator, noise = np.random.default_rng(n), Noise(3e-4, examples)
    difference = detectable(noise, n, FIVE)
    assert chance_to_show(noise, n, difference, FIVE) == pytest.approx(0.8, abs=1e-6)
    shown = np.mean([found_from(draw(generator, noise, n, difference), examples).p < FIVE for _ in range(600)])
    assert shown == pytest.approx(0.8, abs=0.06)


def test_without_luck_of_examples_it_is_the_textbook_t_test() -> None:
    """Ten pairs, one standard deviation apart, 5 % two-sided: 80.3 % (noncentral t, here by its upper side)."""
    exact = stats.nct.sf(stats.t.ppf(0.975, 9), 9, math.sqrt(10))
    assert chance_to_show(Noise(1.0, 0.0), 10, 1.0, FIVE) == pytest.approx(exact, abs=0.005)


def test_expected_noise_shows_what_simulated_runs_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 15 % of the difference that is seen with 80 %, by the product's comparison (fewer draws, for speed)."""
    monkeypatch.setattr(statistics, "bootstrap_variance", functools.partial(bootstrap_variance, draws=200))
    generator, n, examples, seed_sd, accuracy = np.random.default_rng(3), 5, 400, 0.01, 0.85
    difference = detectable(expected_noise(seed_sd, examples, accuracy), n, FIVE)
    shares = []
    for factor in (0.85, 1.15):
        hits = [_compare_simulated(generator, n, examples, seed_sd, accuracy, factor * difference) for _ in range(60)]
        shares.append(np.mean([found.p is not None and found.p < FIVE for found in hits]))
    assert shares[0] < 0.86
    assert shares[1] > 0.74
    assert shares[0] < shares[1]


def _compare_simulated(
    generator: np.random.Generator, n: int, examples: int, seed_sd: float, accuracy: float, loss: float
) -> PairedDifference:
    difficulty, labels, arms = generator.standard_normal(examples), np.zeros(examples, np.int64), []
    for expected in (accuracy - loss, accuracy):
        ability = stats.norm.ppf(expected)
        luck = seed_sd / stats.norm.pdf(ability) * generator.standard_normal((n, 1))
        own = 0.9 * difficulty + math.sqrt(0.19) * generator.standard_normal((n, examples))
        arms.append((ability + luck < own).astype(np.int64))
    ours, theirs = ([Classified(labels, wrong, 2) for wrong in arm] for arm in arms)
    return paired_difference(ours, theirs, "accuracy", (arms[1].mean(1) - arms[0].mean(1)).tolist(), 0.95)


def test_observed_luck_is_not_counted_twice() -> None:
    """A standard deviation observed on a test set has the luck of its examples in it."""
    as_observed, as_true = expected_noise(0.01, 1000, 0.85, measured_on=1000), expected_noise(0.01, 1000, 0.85)
    assert as_observed.one_seed == pytest.approx(2 * 0.01**2)
    assert as_true.one_seed > as_observed.one_seed


def test_more_seeds_examples_or_tolerance_show_smaller_differences() -> None:
    by_seeds = [detectable(expected_noise(0.01, 1000), n, FIVE) for n in (2, 3, 5, 10, 20)]
    assert by_seeds == sorted(by_seeds, reverse=True)
    assert detectable(expected_noise(0.01, 4000), 5, FIVE) < by_seeds[2] < detectable(Noise(3e-4, 0), 5, FIVE / 7)
    assert detectable(expected_noise(0.01, 1000), 1, FIVE) == math.inf
    assert chance_to_show(Noise(3e-4, 0), 5, 1.0, 0.0) == 0, "a look at which nothing counts"


def test_seeds_to_confirm_is_the_least_number_that_does() -> None:
    noise, level_at = expected_noise(0.01, 1821), level_after((), 7, FIVE)
    n = seeds_to_confirm(noise, 0.015, level_at)
    assert n is not None
    assert chance_to_show(noise, n, 0.015, FIVE / 7) >= 0.8 > chance_to_show(noise, n - 1, 0.015, FIVE / 7)
    assert seeds_to_confirm(Noise(1e-4, 1e-4), 0.015, level_at) is None, "examples' luck stays"


def test_the_level_after_looks_is_that_of_the_next_look() -> None:
    assert level_after((), 4, FIVE)(8) == FIVE / 4
    assert level_after((3, 5), 4, FIVE)(8) == nominal_level(LOOKS[:3], 20, FIVE / 4)


@pytest.mark.parametrize("family", [1, 4])
@pytest.mark.parametrize("start", [3, 5])
def test_three_of_four_are_settled_after_as_many_seeds_as_advised(start: int, family: int) -> None:
    """1, 2 and 4 points, looks counted; the larger simulation is benchmarks/fairness.py more-seeds."""
    generator, noise, level_at = np.random.default_rng(7), Noise(3e-4, 6e-6), level_after((start,), family, FIVE)
    given = settled = 0
    for difference in (0.01, 0.02, 0.04):
        for _ in range(60):
            by_seed = draw(generator, noise, 100, difference)
            found = found_from(by_seed[:start], noise.examples)
            outlook = seeds_to_settle(found, level_at) if found.p >= FIVE / family else None
            if outlook is None or outlook.kind != SEEDS:
                continue
            given += 1
            assert start < outlook.low <= outlook.high
            settled += found_from(by_seed[: outlook.high], noise.examples).p < level_at(outlook.high)
    assert given >= 15
    assert settled >= 0.75 * given


def test_what_seeds_cannot_settle_is_said() -> None:
    wobble = np.array([-1.0, 0.0, 1.0])
    level_at = level_after((), 1, FIVE)
    near = seeds_to_settle(found_from(0.001 + 0.01 * wobble), level_at)
    assert near == Outlook(MARGIN)
    assert "state a margin" in describe_outlook(near, 3)
    sure_of_margin = seeds_to_settle(found_from(0.001 + 0.01 * wobble), level_at, margin=0.03)
    assert sure_of_margin.kind == SEEDS, "with a margin there is something to show"
    limited = seeds_to_settle(found_from(0.01 + 0.005 * wobble, examples=4e-5), level_at, units=1000)
    assert limited.kind == EXAMPLES
    assert limited.examples > 1000
    assert f"{limited.examples:,} in all" in describe_outlook(limited, 3)
    many = seeds_to_settle(found_from(0.026 + 0.03 * wobble), level_after((), 10_000, FIVE))
    assert many == Outlook(MANY)
    assert "more than 100 seeds" in describe_outlook(many, 3)


def test_the_plan_says_what_it_can_show() -> None:
    noise = expected_noise(0.01, 1821)
    words = describe_power(noise, 5, 1821, 7, FIVE, margin=0.015, margin_text="1.5 %")
    seen, hidden = (100 * detectable(noise, 5, FIVE / 7, power) for power in (0.8, 0.2))
    confirmed = seeds_to_confirm(noise, 0.015, level_after((), 7, FIVE))
    assert words == (
        f"5 seeds, 1,821 test examples, 7 comparisons: 80 % chance to see {seen:.1f} points; below about {hidden:.1f} "
        f"nothing will show; the margin of 1.5 % cannot be confirmed with fewer than {confirmed} seeds"
    )
    assert describe_power(noise, 20, 1821, 1, FIVE, margin=0.03).endswith("the margin of 3.0 points can be confirmed")
    assert describe_power(noise, 1, 1821, 1, FIVE).startswith("1 seed, 1,821 test examples, 1 comparison: no verdict")
    assert "takes more test examples" in describe_power(Noise(1e-4, 1e-4), 5, 300, 1, FIVE, margin=0.01)


def test_shares_say_what_to_add() -> None:
    def shares(seeds: float, examples: float, word: str = "not separable") -> str:
        found = PairedDifference(5, 0.01, -0.01, 0.03, 0.2, seeds, seeds + examples, 4, 0.95)
        return share_text(Comparison("a", "b", found, Verdict(word, 0.2, ""), (), None))

    assert shares(8e-5, 2e-5) == "Uncertainty: seeds 80 %, examples 20 %; add seeds."
    assert shares(2e-5, 8e-5) == "Uncertainty: seeds 20 %, examples 80 %; add test examples."
    assert shares(5e-5, 5e-5) == "Uncertainty: seeds 50 %, examples 50 %; add seeds or test examples."
    assert shares(8e-5, 2e-5, "better") == "", "nothing need be added to what is settled"
    assert measured_noise(found_from(np.array([0.01, 0.02, 0.03]), 2e-5)).examples == pytest.approx(2e-5)


def test_a_missing_run_counts_as_worse_than_any_that_finished() -> None:
    assert stand_in([0.80, 0.84, 0.83]) == pytest.approx(0.76)
    assert stand_in([10.0, 12.0], lower_is_better=True) == pytest.approx(14.0)
    assert math.isnan(stand_in([]))
    ours, theirs = [0.86, 0.87, None, 0.86, 0.88], [0.84, 0.84, 0.85, 0.85, 0.85]
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
    found = found_from(np.array([a - b for a, b in pairs]), 1e-6)
    assert found.p < FIVE
    counted = count_missing(found, ours, theirs, (0.84, 0.84))
    assert counted.n == 5
    assert counted.difference == pytest.approx(np.mean([0.02, 0.03, -0.01, 0.01, 0.03]))
    assert counted.p > FIVE, "it hangs on the missing run"
    whole = count_missing(found, [a for a, _ in pairs], [b for _, b in pairs], (0.0, 0.0))
    assert (whole.p, whole.low) == (pytest.approx(found.p), pytest.approx(found.low)), (
        "nothing missing, nothing changed"
    )
