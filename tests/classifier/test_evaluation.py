"""Intervals, calibration and mistakes: against known numbers, scikit-learn, and what must always hold."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from fairtune import TextClassifier
from fairtune.classifier.calibration import (
    calibration_error,
    find_temperature,
    fold_temperature,
    negative_log_likelihood,
)
from fairtune.classifier.errors import UnusableModelError
from fairtune.classifier.evaluation import (
    Mistakes,
    by_class,
    confusion,
    find_mistakes,
    overall,
    wilson,
)
from fairtune.classifier.inputs import read_texts
from fairtune.settings.metrics import classification_metrics
from tests.classifier.made_examples import make_texts, quick
from tests.models.architectures import build

CLASSES = np.array(["a", "b", "c"])


def test_wilsons_interval_of_known_shares() -> None:
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5), "the example that textbooks use"
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)
    assert wilson(20, 20) == pytest.approx((0.8389, 1), abs=5e-5)
    assert wilson(0, 0) == (0, 1)


@pytest.mark.parametrize("classes", [2, 3, 30])
def test_values_are_those_of_scikit_learn_and_lie_in_their_intervals(classes: int) -> None:
    draw = np.random.default_rng(classes)
    labels = draw.integers(0, classes, 400)
    scores = draw.normal(size=(400, classes)) + 2 * np.eye(classes)[labels]
    predicted = scores.argmax(axis=1)
    matrix = confusion(labels, predicted, classes)
    np.testing.assert_array_equal(matrix, confusion_matrix(labels, predicted, labels=range(classes)))
    expected = classification_metrics(labels, scores)
    for row in overall(matrix):
        assert row["value"] == pytest.approx(expected[row["metric"]])
        assert row["low"] < row["value"] < row["high"]
        assert row["n"] == 400
    table = by_class(matrix, np.arange(classes))
    precision, recall, f1, n = precision_recall_fscore_support(labels, predicted, labels=range(classes))
    for name, values in {"precision": precision, "recall": recall, "f1": f1, "n": n}.items():
        np.testing.assert_allclose(table[name], values)
    assert (table["f1_low"] <= table["f1"]).all()
    assert (table["f1"] <= table["f1_high"]).all()


def test_without_a_mistake_the_interval_still_allows_for_one() -> None:
    for row in overall(np.diag([30, 30])):
        assert row["value"] == 1
        assert 0.8 < row["low"] < 0.97


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "f1"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(metric: str) -> None:
    draw, held = np.random.default_rng(1), []
    cells = np.array([0.45, 0.05, 0.1, 0.4])
    truth = {row["metric"]: row["value"] for row in overall((cells * 1e6).astype(int).reshape(2, 2))}[metric]
    for _ in range(200):
        row = next(r for r in overall(draw.multinomial(100, cells).reshape(2, 2)) if r["metric"] == metric)
        held.append(row["low"] <= truth <= row["high"])
    assert 0.9 <= np.mean(held) <= 0.995


def test_a_temperature_that_is_known_is_found_again() -> None:
    draw = np.random.default_rng(0)
    logits = draw.normal(scale=2, size=(4000, 3))
    labels = np.array([draw.choice(3, p=row) for row in softmax(logits, axis=1)])
    found = find_temperature(logits * 2.5, labels)
    assert found.temperature == pytest.approx(2.5, rel=0.05)
    assert found.ece_after < 0.02 < found.ece_before
    assert found.nll_after < found.nll_before
    assert found.n == 4000


def test_where_every_example_is_right_the_temperature_stays_one() -> None:
    found = find_temperature(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([0, 1]))
    assert found.temperature == 1
    assert "says nothing of how sure" in found.note


def test_the_calibration_error_of_known_confidences() -> None:
    logits = np.log(np.array([[0.9, 0.1]] * 10 + [[0.7, 0.3]] * 10))
    labels = np.array([0] * 9 + [1] + [0] * 5 + [1] * 5)
    assert calibration_error(logits, labels) == pytest.approx(0.5 * 0 + 0.5 * 0.2)
    assert negative_log_likelihood(logits[:1], np.array([0])) == pytest.approx(-np.log(0.9))


HEADS = ["bert", "roberta", "distilbert", "electra", "albert", "mpnet", "deberta-v3", "modernbert", "gpt2-classifier"]


@pytest.mark.parametrize("name", HEADS)
def test_a_temperature_is_folded_into_any_head(name: str) -> None:
    network, ids = build(name).eval(), torch.tensor([[5, 6, 7]])
    before = network(input_ids=ids).logits
    fold_temperature(network, 2.5)
    torch.testing.assert_close(network(input_ids=ids).logits * 2.5, before, rtol=1e-4, atol=1e-6)


def test_a_head_that_cannot_be_scaled_is_left_as_it_was(small_model: Path) -> None:
    found = quick(small_model, validation=0, train={"steps": 1}).fit(*make_texts(8))
    network = found.predictor_.network
    whole = network.classifier
    network.classifier = torch.nn.Sequential(whole, torch.nn.Tanh())
    before = whole.weight.clone()
    with pytest.raises(UnusableModelError, match="does not end in a linear layer"):
        fold_temperature(network, 2.0)
    torch.testing.assert_close(whole.weight, before)


def test_calibration_changes_probabilities_and_no_label(small_model: Path, fitted: TextClassifier) -> None:
    plain = quick(small_model).fit(*make_texts(60))
    texts = make_texts(40, seed=9)[0]
    assert plain.temperature_ == 1
    assert fitted.temperature_ != 1
    np.testing.assert_array_equal(plain.predict(texts), fitted.predict(texts))
    logits = plain.predictor_.logits([(text,) for text in texts])
    np.testing.assert_allclose(fitted.predict_proba(texts), softmax(logits / fitted.temperature_, axis=1), atol=1e-5)


def made() -> Mistakes:
    probabilities = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.9, 0.05, 0.05], [0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])
    return find_mistakes(read_texts(list("vwxyz")), np.array([0, 0, 1, 1, 2]), probabilities, CLASSES)


def test_mistakes_come_most_confident_first_with_what_was_right() -> None:
    found = made()
    assert list(found) == ["text", "label", "predicted", "confidence", "probability_of_label"]
    assert found.index.tolist() == [2, 1, 3]
    assert found["text"].tolist() == ["x", "w", "y"]
    assert found["label"].tolist() == ["b", "a", "b"]
    assert found["predicted"].tolist() == ["a", "b", "c"]
    assert found["confidence"].tolist() == [0.9, 0.7, 0.4]
    assert found["probability_of_label"].tolist() == [0.05, 0.2, 0.3]
    assert found.confusion.loc["b", "a"] == 1
    assert found.confusion.to_numpy().sum() == 5
    assert found.per_class.loc["a", "n"] == 2
    assert found.overall.loc["accuracy", "value"] == pytest.approx(0.4)


def test_mistakes_of_pairs_show_both_texts() -> None:
    given = read_texts([("v", "1"), ("w", "2")])
    found = find_mistakes(given, np.array([0, 1]), np.array([[0.9, 0.1, 0.0], [0.6, 0.3, 0.1]]), CLASSES)
    assert found[["text", "pair", "label", "predicted"]].to_numpy().tolist() == [["w", "2", "b", "a"]]


def test_what_stands_beside_the_mistakes_survives_slicing_and_copies() -> None:
    found = made()
    part = found[found["label"] == "b"]
    assert isinstance(part, Mistakes)
    assert part.examples == 5
    pd.testing.assert_frame_equal(part.confusion, found.confusion)
    assert pickle.loads(pickle.dumps(found)).per_class.equals(found.per_class)


def test_it_shows_the_figures_before_the_table() -> None:
    shown = repr(made())
    assert shown.startswith("3 of 5 examples wrong; accuracy 40.0 % (")
    assert "most often: a taken for b (1), b taken for a (1), b taken for c (1)" in shown
    assert "<pre>3 of 5 examples wrong" in str(made()._repr_html_())


def test_errors_keep_the_index_of_the_data(fitted: TextClassifier) -> None:
    texts, labels = make_texts(40, seed=5)
    series = pd.Series(texts, index=[f"row-{i}" for i in range(40)])
    found = fitted.errors(series, labels)
    assert found.examples == 40
    assert len(found) == (fitted.predict(texts) != np.array(labels)).sum() > 0
    assert (series[found.index] == found["text"]).all()
    wrong_way = fitted.errors(texts, fitted.predict(texts))
    assert len(wrong_way) == 0
    assert wrong_way.summary.startswith("0 of 40 examples wrong")
