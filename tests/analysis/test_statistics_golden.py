"""Statistics against known numbers, against statsmodels, and against simulated truth."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from fairtune.analysis import resampling, statistics
from fairtune.analysis.resampling import Classified, bootstrap_variance
from fairtune.analysis.statistics import PairedDifference, holm, paired_difference, summarise, summarise_arm
from fairtune.analysis.verdicts import judge


def test_summary_of_three_seeds() -> None:
    found = summarise([0.80, 0.82, 0.84], 0.95)
    assert found.n == 3
    assert found.mean == pytest.approx(0.82)
    assert found.sd == pytest.approx(0.02)
    assert found.low == pytest.approx(0.82 - 4.302652729911275 * 0.02 / math.sqrt(3))
    assert found.high == pytest.approx(0.82 + 4.302652729911275 * 0.02 / math.sqrt(3))


def test_more_confidence_is_a_wider_interval() -> None:
    narrow, wide = (summarise([0.80, 0.82, 0.84], c) for c in (0.9, 0.99))
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    one, none = summarise([0.8], 0.95), summarise([], 0.95)
    assert (one.n, one.mean, one.sd, one.low, one.high) == (1, 0.8, None, None, None)
    assert none.n == 0
    assert math.isnan(none.mean)


BOUNDS = (0.0, 1.0)


@pytest.mark.parametrize("right", [0, 1, 3, 100, 197, 200])
def test_an_arms_interval_stays_inside_the_metrics_bounds_and_counts_examples(right: int) -> None:
    """Seeds that all agree say nothing about the next examples: a constant model is not sure to the last digit."""
    labels = np.zeros(200, dtype=np.int64)
    sample = Classified(labels, (np.arange(200) >= right).astype(np.int64), 2)
    share = right / 200
    found = summarise_arm([share] * 3, share * (1 - share) / 200, sample, BOUNDS, 0.95)
    assert (found.mean, found.sd) == (share, 0.0)
    assert found.low is not None
    assert found.high is not None
    assert 0.0 <= found.low <= share <= found.high <= 1.0
    assert found.high - found.low > 0.01
    if right == 100:
        assert found.high - 0.5 == pytest.approx(0.5 - found.low)
        assert found.high - 0.5 == pytest.approx(2.306 * math.sqrt(0.25 / 200), rel=0.01), "t of 8 degrees of freedom"


def test_an_arms_interval_on_an_open_scale_stays_positive() -> None:
    sample = Classified(np.zeros(200, dtype=np.int64), np.zeros(200, dtype=np.int64), 2)
    found = summarise_arm([2.0, 10.0, 30.0], 70.0, sample, (0.0, math.inf), 0.95)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.mean < found.high
    assert found.high / found.mean == pytest.approx(found.mean / found.low), "symmetric as ratios"


@pytest.mark.parametrize(
    ("raw", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.03], [0.03]),
        ([0.6, 0.7], [1.0, 1.0]),
        ([0.01, None, 0.04], [0.02, None, 0.04]),
        ([None], [None]),
        ([], []),
    ],
)
def test_holm_known_values(raw: list[float | None], adjusted: list[float | None]) -> None:
    assert holm(raw) == [None if value is None else pytest.approx(value) for value in adjusted]


def test_holm_equals_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    generator = np.random.default_rng(0)
    for size in (1, 2, 5, 20):
        raw = generator.random(size) ** 3
        assert holm(raw.tolist()) == pytest.approx(multitest.multipletests(raw, method="holm")[1].tolist())


def simulate(
    generator: np.random.Generator, seeds: int, examples: int, effect: float = 0.0, spread: float = 0.15
) -> dict[str, Any]:
    """Two arms on examples of different difficulty, with the luck of seeds; `effect` adds to the log-odds of ours."""
    difficulty = generator.normal(1.2, 1.5, examples)
    labels = generator.integers(0, 2, examples)

    def arm(shift: float) -> list[np.ndarray]:
        found = []
        for luck in generator.normal(0, spread, seeds):
            right = generator.random(examples) < 1 / (1 + np.exp(-(difficulty + shift + luck)))
            found.append(np.where(right, labels, 1 - labels))
        return found

    return {"labels": labels, "ours": arm(effect), "theirs": arm(0.0)}


def compare(data: dict[str, Any], metric: str = "accuracy", confidence: float = 0.95) -> PairedDifference:
    labels = data["labels"]
    by_seed = [np.mean(a == labels) - np.mean(b == labels) for a, b in zip(data["ours"], data["theirs"], strict=True)]
    return paired_difference(*classified(data), metric, by_seed, confidence)


def classified(data: dict[str, Any]) -> tuple[list[Classified], list[Classified]]:
    ours, theirs = ([Classified(data["labels"], p, 2) for p in data[arm]] for arm in ("ours", "theirs"))
    return ours, theirs


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bootstrap draws than the product's, so that many trials fit into a few seconds."""
    monkeypatch.setattr(statistics, "bootstrap_variance", functools.partial(bootstrap_variance, draws=300))


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("effect", [-0.6, -0.1, 0.0, 0.2, 0.6])
def test_p_and_interval_agree(seeds: int, effect: float) -> None:
    found = compare(simulate(np.random.default_rng(seeds), seeds, 400, effect))
    assert found.low is not None
    assert found.high is not None
    assert found.p is not None
    assert found.low < found.difference < found.high
    assert (found.p < 0.05) == (not found.low <= 0 <= found.high)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "f1", "mcc"])
def test_swapping_the_arms_mirrors_everything(metric: str) -> None:
    data = simulate(np.random.default_rng(4), 4, 300, 0.3)
    found = compare(data, metric)
    swapped = compare({**data, "ours": data["theirs"], "theirs": data["ours"]}, metric)
    assert swapped.difference == pytest.approx(-found.difference)
    assert swapped.p == pytest.approx(found.p)
    assert (swapped.low, swapped.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_identical_arms_are_not_separable(seeds: int) -> None:
    data = simulate(np.random.default_rng(5), seeds, 200)
    found = compare({**data, "theirs": data["ours"]})
    assert (found.difference, found.p) == (0.0, 1.0)
    assert found.low is not None
    assert found.high == -found.low >= 1 / 200, "one example may go the other way"
    verdict = judge([found], None, 0.95)[0]
    few = "no verdict (too few seeds for a verdict (no difference in either seed))"
    assert str(verdict) == few if seeds == 2 else verdict.word == "not separable"


def test_two_seeds_that_agree_on_few_examples_rule_nothing_out() -> None:
    data = simulate(np.random.default_rng(5), 2, 50)
    assert judge([compare({**data, "theirs": data["ours"]})], 0.01, 0.95)[0].word == "no verdict"


def test_one_seed_gives_a_difference_and_no_verdict() -> None:
    found = compare(simulate(np.random.default_rng(6), 1, 200, 2.0))
    assert found.difference > 0
    assert (found.n, found.low, found.high, found.p) == (1, None, None, None)
    assert found.chance_below(0) is None
    assert judge([found], 0.01, 0.95)[0].word == "no verdict"


def test_two_seeds_that_agree_by_chance_do_not_look_like_many() -> None:
    found = compare(simulate(np.random.default_rng(2), 2, 400, 0.6))
    assert found.df == 1
    assert found.high is not None
    assert found.high - found.difference == pytest.approx(12.706204736432095 * math.sqrt(found.total_variance))


def test_the_answer_is_the_same_every_time() -> None:
    data = simulate(np.random.default_rng(7), 3, 300, 0.2)
    assert compare(data) == compare(data)


@pytest.mark.parametrize(
    ("metric", "variance"),
    [
        ("accuracy", 0.0002820514442406388),
        ("macro_f1", 0.0002830907537751659),
        ("f1", 0.00030048867611630564),
        ("mcc", 0.0011380136657694513),
    ],
)
def test_the_bootstrap_draws_what_it_always_drew(metric: str, variance: float) -> None:
    found = compare(simulate(np.random.default_rng(7), 3, 300, 0.2), metric)
    assert found.total_variance == pytest.approx(variance, rel=1e-12), "old studies keep their figures"


def test_draws_too_many_to_be_kept_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simulate(np.random.default_rng(7), 3, 300, 0.2)
    found = compare(data)
    monkeypatch.setattr(resampling, "KEPT_BYTES", 0)
    assert compare(data) == found


def test_more_examples_and_more_seeds_give_narrower_intervals() -> None:
    def width(seeds: int, examples: int) -> float:
        found = [compare(simulate(np.random.default_rng(s), seeds, examples, spread=0.1)) for s in range(5)]
        return float(np.median([f.high - f.low for f in found if f.high is not None and f.low is not None]))

    assert width(5, 1600) < width(5, 100)
    assert width(8, 300) < width(2, 300)


@pytest.mark.parametrize(("seeds", "spread"), [(2, 0.5), (5, 0.15), (5, 0.5)])
def test_the_variance_is_that_of_repeating_the_whole_study_or_somewhat_more(seeds: int, spread: float) -> None:
    generator = np.random.default_rng(8)
    trials = [simulate(generator, seeds, 300, spread=spread) for _ in range(150)]
    means, variances = [], []
    for data in trials:
        right = [[np.mean(p == data["labels"]) for p in data[arm]] for arm in ("ours", "theirs")]
        means.append(np.mean(right[0]) - np.mean(right[1]))
        variances.append(bootstrap_variance(*classified(data), "accuracy", draws=200))
    assert 0.8 < np.mean(variances) / np.var(means, ddof=1) < 2


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_false_alarms_are_as_rare_as_promised(seeds: int) -> None:
    generator = np.random.default_rng(100 + seeds)
    found = [compare(simulate(generator, seeds, 300)).p for _ in range(200)]
    assert np.mean([p < 0.05 for p in found if p is not None]) <= 0.09


@pytest.mark.usefixtures("few_draws")
def test_a_real_effect_of_8_points_is_found() -> None:
    generator = np.random.default_rng(9)
    results = [compare(simulate(generator, 5, 800, effect=0.62)) for _ in range(20)]
    assert np.mean([r.difference for r in results]) == pytest.approx(0.08, abs=0.01)
    assert sum(judge([r], None, 0.95)[0].word == "better" for r in results) >= 18
