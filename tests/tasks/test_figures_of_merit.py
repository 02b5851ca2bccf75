"""Metrics: known values, scikit-learn's values, and the bootstrap's own counting of the same."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from tests.warm import light_run

from fairtune.analysis.resampling import Classified, metric_from_totals
from fairtune.settings.metrics import (
    METRICS,
    classification_metrics,
    predicted_classes,
    text_metrics,
    title_of,
)


def scores_of(predicted: list[int], classes: int) -> np.ndarray:
    return np.eye(classes)[predicted]


def test_known_values_of_two_classes() -> None:
    labels = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
    found = classification_metrics(labels, scores_of([1, 1, 1, 0, 1, 0, 0, 0, 0, 0], 2))  # 3 hits, 1 miss, 1 false, 5
    assert found["accuracy"] == pytest.approx(0.8)
    assert found["f1"] == pytest.approx(0.75)
    assert found["macro_f1"] == pytest.approx((0.75 + 5 / 6) / 2)
    assert found["mcc"] == pytest.approx((3 * 5 - 1 * 1) / np.sqrt(4 * 4 * 6 * 6))
    assert (found["precision"], found["recall"]) == (0.75, 0.75)
    assert found["specificity"] == pytest.approx(5 / 6), "the recall of the first class"


def test_ties_go_to_the_lowest_class() -> None:
    assert predicted_classes(np.array([[0.5, 0.5], [0.1, 0.2], [3.0, -1.0]])).tolist() == [0, 1, 0]


def test_f1_is_for_two_classes_only() -> None:
    assert "f1" not in classification_metrics(np.array([0, 1, 2]), scores_of([0, 1, 2], 3))


@pytest.mark.parametrize("predicted", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_one_predicted_class_gives_numbers_without_warnings(
    predicted: list[int], recwarn: pytest.WarningsRecorder
) -> None:
    found = classification_metrics(np.array([0, 1, 0, 1]), scores_of(predicted, 2))
    assert found["mcc"] == 0.0
    assert found["accuracy"] == 0.5
    assert len(recwarn) == 0


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_scikit_learn_and_the_bootstraps_counts(classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, 200)
    scores = generator.normal(size=(200, classes)) + 0.8 * np.eye(classes)[labels]
    predicted = predicted_classes(scores)
    found = classification_metrics(labels, scores)
    assert found["accuracy"] == sklearn_metrics.accuracy_score(labels, predicted), "to the bit, as all of them"
    assert found["macro_f1"] == sklearn_metrics.f1_score(labels, predicted, average="macro")
    assert found["mcc"] == sklearn_metrics.matthews_corrcoef(labels, predicted)
    averaged, prefix = ({}, "") if classes == 2 else ({"average": "macro"}, "macro_")
    assert found[f"{prefix}precision"] == sklearn_metrics.precision_score(labels, predicted, **averaged)
    assert found[f"{prefix}recall"] == sklearn_metrics.recall_score(labels, predicted, **averaged)
    if classes == 2:
        assert found["f1"] == sklearn_metrics.f1_score(labels, predicted)
        assert found["specificity"] == sklearn_metrics.recall_score(labels, predicted, pos_label=0)
    counts = Classified(labels, predicted, classes).totals(np.ones((1, 200)))
    by_line = {name: value for name, value in found.items() if METRICS[name].has_line}
    of_two, of_many = {"f1", "precision", "recall", "specificity"}, {"macro_precision", "macro_recall"}
    assert set(by_line) == {"accuracy", "macro_f1", "mcc"} | (of_two if classes == 2 else of_many)
    for metric, value in by_line.items():
        assert metric_from_totals(metric)(counts)[0] == pytest.approx(value)


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "f1", "mcc", "precision", "recall", "specificity"])
def test_a_weighted_draw_is_the_metric_of_the_repeated_examples(metric: str) -> None:
    generator = np.random.default_rng(1)
    labels, predicted = generator.integers(0, 2, 40), generator.integers(0, 2, 40)
    weights = generator.multinomial(40, np.full(40, 1 / 40), size=5)
    drawn = metric_from_totals(metric)(Classified(labels, predicted, 2).totals(weights.astype(float)))
    for value, weight in zip(drawn, weights, strict=True):
        rows = np.repeat(np.arange(40), weight)
        assert value == pytest.approx(classification_metrics(labels[rows], np.eye(2)[predicted[rows]])[metric])


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "f1", "mcc", "precision", "recall", "specificity"])
def test_counts_of_one_class_alone_give_a_number(metric: str) -> None:
    labels = predicted = np.zeros(10, dtype=np.int64)
    expected = {"accuracy": 1.0, "macro_f1": 0.5, "f1": 0.0, "mcc": 0.0, "specificity": 1.0}.get(metric, 0.0)
    assert (
        metric_from_totals(metric)(Classified(labels, predicted, 2).totals(np.ones((3, 10)))).tolist() == [expected] * 3
    )


def test_known_values_of_two_documents() -> None:
    found = text_metrics(np.array([6.0, 2.0]), np.array([3, 1]), np.array([10, 6]), np.array([2, 1]), np.array([1, 1]))
    assert found["loss"] == pytest.approx(2.0), "8 nats over 4 tokens, not the mean of two means"
    assert found["perplexity"] == pytest.approx(7.38905609893065)
    assert found["word_perplexity"] == pytest.approx(math.exp(8 / 3))
    assert found["bits_per_byte"] == pytest.approx(8 / math.log(2) / 16)
    assert found["token_accuracy"] == 0.5


def test_a_uniform_guess_over_256_bytes_is_8_bits_a_byte() -> None:
    found = text_metrics(np.array([100 * math.log(256)]), *(np.array([n]) for n in (100, 100, 20, 0)))
    assert found["bits_per_byte"] == pytest.approx(8.0)
    assert found["perplexity"] == pytest.approx(256.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("nll", "perplexity"), [(1e6, math.inf), (math.inf, math.inf), (math.nan, math.nan), (0.0, 1.0)]
)
def test_a_perplexity_too_large_for_a_number_is_infinite(nll: float, perplexity: float) -> None:
    found = text_metrics(np.array([nll, 0.0]), *(np.array([1, 1]) for _ in range(4)))
    assert found["perplexity"] == pytest.approx(perplexity, nan_ok=True)


def test_what_is_known_of_each_metric() -> None:
    lower = {name for name, facts in METRICS.items() if facts.lower_is_better}
    texts = {"loss", "perplexity", "word_perplexity", "bits_per_byte"}
    assert lower == texts | {"log_loss", "brier", "calibration_error"}
    found = text_metrics(*(np.ones(1) for _ in range(5)))
    assert set(found) == {name for name, facts in METRICS.items() if facts.kind == "language_model"}
    assert (title_of("word_perplexity"), METRICS["mcc"].shown) == ("word perplexity", "x100")


def test_facts_of_metrics_need_neither_torch_nor_scikit_learn() -> None:
    code = "import sys, fairtune.settings.metrics; print([m for m in ('torch', 'sklearn') if m in sys.modules])"
    assert light_run([sys.executable, "-c", code], text=True, check=True).stdout == "[]\n"
