"""Metrics that no decision line touches: scikit-learn's values, ties, any weighting of examples, and classes that are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax
from sklearn import metrics as reference
from sklearn.preprocessing import label_binarize

from fairtune.analysis.resampling import bootstrap_variances, scored
from fairtune.ledger.predictions import Predictions
from fairtune.settings.metrics import METRICS, classification_metrics
from fairtune.settings.score_metrics import BINS, LEAST, ScoredExamples

NAMES = [name for name, facts in METRICS.items() if facts.from_scores is not None]


def made(classes: int, seed: int, rounded: bool, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), generator.integers(0, classes, n - classes)])
    scores = generator.normal(size=(n, classes)) + 0.8 * np.eye(classes)[labels]
    return labels, (np.round(scores) if rounded else scores).astype(np.float32)


def known(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None) -> dict[str, float]:
    """The same by scikit-learn, which has no calibration error."""
    shares, classes = softmax(scores.astype(np.float64), axis=1).round(13), scores.shape[1]  # what is equal stays equal
    sides = label_binarize(labels, classes=range(classes))
    two = classes == 2
    options = {"sample_weight": weights}
    return {
        "roc_auc": reference.roc_auc_score(labels, shares[:, 1], **options)
        if two
        else reference.roc_auc_score(labels, shares, multi_class="ovr", **options),
        "average_precision": reference.average_precision_score(labels, shares[:, 1], **options)
        if two
        else reference.average_precision_score(sides, shares, **options),
        "log_loss": reference.log_loss(labels, shares, labels=range(classes), **options),
        "brier": reference.brier_score_loss(labels, shares, labels=range(classes), scale_by_half=True, **options)
        if not two
        else reference.brier_score_loss(labels, shares[:, 1], **options),
    }


@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "ties"])
@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_scikit_learns_ties_included(classes: int, seed: int, rounded: bool) -> None:
    labels, scores = made(classes, seed, rounded)
    found = classification_metrics(labels, scores)
    for name, value in known(labels, scores).items():
        assert found[name] == pytest.approx(value, abs=1e-11), name


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "ties"])
def test_a_weighting_is_the_metric_of_weighted_examples(classes: int, rounded: bool) -> None:
    labels, scores = made(classes, 5, rounded)
    weights = np.random.default_rng(1).multinomial(150, np.full(150, 1 / 150), size=4).astype(np.float64)
    for name in NAMES:
        drawn = METRICS[name].from_scores(ScoredExamples(labels, scores))(weights)  # type: ignore[misc]
        for value, own in zip(drawn, weights, strict=True):
            rows = np.repeat(np.arange(150), own.astype(int))
            assert value == pytest.approx(classification_metrics(labels[rows], scores[rows])[name], abs=1e-12), name
            if name != "calibration_error":
                assert value == pytest.approx(known(labels, scores, own)[name], abs=1e-11), name


def test_calibration_error_is_the_gap_of_each_bin_by_its_size() -> None:
    assert BINS == 15
    shares = np.array([0.9, 0.9, 0.9, 0.9, 0.6, 0.6])
    scores = np.log(np.stack([1 - shares, shares], axis=1))
    found = classification_metrics(np.array([1, 1, 1, 0, 1, 0]), scores)["calibration_error"]
    assert found == pytest.approx((4 * abs(0.75 - 0.9) + 2 * abs(0.5 - 0.6)) / 6)


@pytest.mark.filterwarnings("error")
def test_scores_that_say_nothing_and_scores_that_say_all() -> None:
    labels = np.array([0, 1, 1, 0, 1])
    nothing = classification_metrics(labels, np.zeros((5, 2)))
    assert (nothing["roc_auc"], nothing["average_precision"]) == (0.5, 0.6), "of equal scores no order is made up"
    assert (nothing["log_loss"], nothing["brier"]) == (pytest.approx(math.log(2)), 0.25)
    with np.errstate(divide="ignore"):
        sure = np.log(np.eye(2)[labels])
    everything, opposite = classification_metrics(labels, sure), classification_metrics(1 - labels, sure)
    assert [everything[name] for name in NAMES] == pytest.approx([1, 1, 0, 0, 0], abs=1e-12)
    assert opposite["log_loss"] == pytest.approx(-LEAST), "a probability of 0 does not make the mean infinite"
    assert (opposite["roc_auc"], opposite["brier"]) == (0, pytest.approx(1))


def test_log_odds_beyond_what_a_probability_holds_are_still_ranked() -> None:
    scores = np.array([[0, 50], [0, 60], [0, 70], [0, 80]], dtype=np.float32)
    assert classification_metrics(np.array([0, 0, 1, 1]), scores)["roc_auc"] == 1.0


def test_scores_that_are_no_numbers_give_none() -> None:
    scores = np.array([[0.0, math.nan], [1.0, 0.0], [0.0, 1.0]])
    assert all(math.isnan(classification_metrics(np.array([0, 1, 1]), scores)[name]) for name in NAMES)


def test_of_one_class_rankings_are_left_out_and_of_missing_classes_the_others_count() -> None:
    one = classification_metrics(np.ones(4, dtype=np.int64), np.random.default_rng(0).normal(size=(4, 2)))
    assert {"roc_auc", "average_precision"} & set(one) == set()
    assert math.isfinite(one["log_loss"])
    labels, scores = made(3, 0, rounded=False)
    rows = labels != 2
    found = classification_metrics(labels[rows], scores[rows])
    shares = softmax(scores[rows].astype(np.float64), axis=1)
    expected = [reference.roc_auc_score(labels[rows] == number, shares[:, number]) for number in (0, 1)]
    assert found["roc_auc"] == pytest.approx(np.mean(expected))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_draws_without_a_class_leave_a_finite_variance(name: str, classes: int) -> None:
    labels = np.zeros(40, dtype=np.int64)
    labels[:2], labels[2:4] = 1, classes - 1
    generator = np.random.default_rng(3)
    runs = [Predictions((), labels, generator.normal(size=(40, classes)).astype(np.float32)) for _ in range(6)]
    sides = [[scored(run, name) for run in runs[:3]], [scored(run, name) for run in runs[3:]]]
    found = bootstrap_variances(sides[0], sides[1], {}, 400, [name])[name]
    assert 0 < found < 1, "a draw without a positive example is one in ten here"
