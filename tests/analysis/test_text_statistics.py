"""Language models: lower is better, documents are what is resampled, and verdicts are as rarely wrong as promised."""

from __future__ import annotations

import functools
import math
from collections import Counter

import numpy as np
import pytest
from made_documents import compare, perplexities, simulate

from fairtune.analysis import statistics
from fairtune.analysis.resampling import Documents, bootstrap_variance, metric_from_totals
from fairtune.analysis.statistics import paired_difference, summarise
from fairtune.analysis.verdicts import judge
from fairtune.settings.metrics import METRICS, text_metrics

TEXT_METRICS = [name for name, facts in METRICS.items() if facts.kind == "language_model"]


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer bootstrap draws than the product's, so that many trials fit into a few seconds."""
    monkeypatch.setattr(statistics, "bootstrap_variance", functools.partial(bootstrap_variance, draws=200))


@pytest.mark.parametrize("metric", TEXT_METRICS)
def test_a_weighted_draw_is_the_metric_of_the_repeated_documents(metric: str) -> None:
    (run, *_) = simulate(np.random.default_rng(1), 1, 30)["ours"]
    weights = np.random.default_rng(2).multinomial(29, np.full(30, 1 / 30), size=4)
    drawn = metric_from_totals(metric)(run.totals(weights.astype(float)))
    for value, weight in zip(drawn, weights, strict=True):
        columns = np.repeat(run.sums, weight, axis=0).T
        assert value == pytest.approx(text_metrics(*columns)[metric])


def test_the_variance_of_a_mean_over_documents_is_the_known_one() -> None:
    generator = np.random.default_rng(3)
    loss, same = generator.normal(2, 1, 50), np.full(50, 2.0)
    ours, theirs = ([Documents(np.stack([column, *[np.ones(50)] * 4], axis=1))] * 2 for column in (loss, same))
    found = bootstrap_variance(ours, theirs, "loss", draws=20_000)
    assert found == pytest.approx(np.var(loss, ddof=1) / 50, rel=0.03), "also with few: one document fewer is drawn"


def test_long_documents_are_few_however_many_tokens_they_have() -> None:
    few, many = (
        [compare(simulate(np.random.default_rng(s), 3, documents, spread=0.001)) for s in range(5)]
        for documents in (10, 300)
    )
    assert np.median([f.total_variance for f in few]) > 5 * np.median([f.total_variance for f in many])


def test_swapping_the_arms_mirrors_everything() -> None:
    data = simulate(np.random.default_rng(4), 4, 100, 0.05)
    found, swapped = compare(data), compare({"ours": data["theirs"], "theirs": data["ours"]})
    assert swapped.p == pytest.approx(found.p)
    mirrored = found.mirrored()
    assert (swapped.difference, swapped.low, swapped.high) == (
        pytest.approx(mirrored.difference), pytest.approx(mirrored.low), pytest.approx(mirrored.high)
    )  # fmt: skip


def test_a_higher_perplexity_is_a_loss() -> None:
    found = compare(simulate(np.random.default_rng(5), 5, 200, 0.3, spread=0.005))
    assert found.difference > 0
    assert judge([found], None, 0.95, lower_is_better=True)[0].word == "worse"
    assert judge([found.mirrored()], None, 0.95, lower_is_better=True)[0].word == "better"


def test_identical_arms_are_not_separable_and_equivalent() -> None:
    data = simulate(np.random.default_rng(6), 3, 50)
    found = compare({**data, "theirs": data["ours"]})
    assert (found.difference, found.p) == (0.0, 1.0)
    verdicts = [judge([found], margin, 0.95, lower_is_better=True)[0] for margin in (None, 0.1)]
    assert [v.word for v in verdicts] == ["not separable", "equivalent"]
    assert "state a margin" in verdicts[0].note


def test_one_seed_gives_a_difference_and_no_verdict() -> None:
    found = compare(simulate(np.random.default_rng(7), 1, 100, 0.5))
    assert found.difference > 0
    assert judge([found], 0.1, 0.95, lower_is_better=True)[0].word == "no verdict"


def test_one_document_gives_no_verdict_however_long_it_is() -> None:
    (verdict,) = judge([compare(simulate(np.random.default_rng(8), 3, 1, 0.5))], 0.1, 0.95, lower_is_better=True)
    assert str(verdict) == "no verdict (the test split has one document only; two or more are needed)"


def test_few_documents_bound_the_degrees_of_freedom() -> None:
    assert compare(simulate(np.random.default_rng(9), 5, 4)).df <= 3


@pytest.mark.filterwarnings("error")
def test_perplexities_that_square_to_no_number_are_compared_all_the_same() -> None:
    huge = [Documents(np.array([[7000.0, 10, 50, 8, 0], [7090.0, 10, 50, 8, 0]]))] * 3
    usual = [Documents(np.array([[20.0, 10, 50, 8, 0], [21.0, 10, 50, 8, 0]]))] * 3
    found = compare({"ours": huge, "theirs": usual})
    assert found.difference == pytest.approx(704.5 - 2.05)
    assert judge([found], math.log(2), 0.95, True)[0].word == "inferior"


@pytest.mark.filterwarnings("error")
def test_losses_beyond_any_number_give_no_verdict_and_no_crash() -> None:
    huge = [Documents(np.array([[1e300, 10, 50, 8, 0], [2e300, 10, 50, 8, 0]]))] * 2
    usual = [Documents(np.array([[20.0, 10, 50, 8, 0], [21.0, 10, 50, 8, 0]]))] * 2
    (verdict,) = judge([paired_difference(huge, usual, "perplexity", [1.5e299, 1.5e299], 0.95)], 1.0, 0.95, True)
    assert str(verdict) == "no verdict (the perplexity is too large to be compared)"


def test_a_ratio_is_the_same_at_any_perplexity() -> None:
    """Twice as hard documents, the same arms: the comparison by ratios does not change."""
    data = simulate(np.random.default_rng(10), 4, 80, 0.05)
    harder = {
        arm: [Documents(run.sums + np.outer(run.sums[:, 1], [math.log(2), 0, 0, 0, 0])) for run in runs]
        for arm, runs in data.items()
    }
    found, other = compare(data), compare(harder)
    assert perplexities(harder["ours"])[0] == pytest.approx(2 * perplexities(data["ours"])[0])
    assert (other.difference, other.p) == (pytest.approx(found.difference), pytest.approx(found.p))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_mean_that_is_no_number_has_no_interval(value: float) -> None:
    found = summarise([8.0, value, 9.0], 0.95)
    assert not math.isfinite(found.mean)
    assert (found.n, found.sd, found.low, found.high) == (3, None, None, None)


def words(trials: int, seeds: int, effect: float) -> Counter[str]:
    """Verdicts at a margin of 5 % of the reference's perplexity, as a study states it."""
    generator = np.random.default_rng([seeds, round(1000 * abs(effect))])
    found: Counter[str] = Counter()
    for _ in range(trials):
        data = simulate(generator, seeds, 100, effect)
        found[judge([compare(data)], math.log(1.05), 0.95, lower_is_better=True)[0].word] += 1
    return found


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("seeds", [3, 5])
def test_false_alarms_are_as_rare_as_promised(seeds: int) -> None:
    found = words(100, seeds, 0.0)
    assert found["better"] + found["worse"] + found["inferior"] <= 0.09 * 100
    assert found["inferior"] == 0, "the truth is far from the margin"


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("seeds", [3, 5])
def test_a_loss_of_just_the_margin_is_rarely_called_within_or_beyond_it(seeds: int) -> None:
    found = words(100, seeds, math.log(1.05))
    assert found["not inferior"] + found["equivalent"] <= 0.06 * 100
    assert found["inferior"] <= 0.06 * 100
    assert found["better"] == 0


@pytest.mark.usefixtures("few_draws")
def test_a_loss_of_three_margins_is_found_inferior_and_a_clear_gain_better() -> None:
    assert words(20, 5, 3 * math.log(1.05))["inferior"] >= 18
    assert words(20, 5, -0.15)["better"] >= 18
