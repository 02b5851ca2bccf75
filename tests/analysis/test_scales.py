"""Figures are shown as their metric wants: percent and points, hundredths, or plain numbers with a change in percent."""

from __future__ import annotations

import math

import pytest

from fairtune.analysis.scales import relative, scale_of
from fairtune.settings.metrics import METRICS


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4.2713, "4.271"), (18.357, "18.36"), (434.31, "434.3"), (43430.2, "43,430"), (9.99996, "10.00"),
        (0.69124, "0.6912"), (0.0, "0.000"), (math.inf, "∞"), (math.nan, "–"), (None, "–"),
    ],
)  # fmt: skip
def test_a_perplexity_has_four_digits(value: float | None, expected: str) -> None:
    assert scale_of("perplexity").value(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.4213, "+0.421"), (-0.0301, "−0.030"), (0.00001, "0.000"), (1223.917, "+1,224"), (math.inf, "–"), (None, "–")],
)
def test_a_difference_has_no_more_places_than_what_it_changes(value: float | None, expected: str) -> None:
    assert scale_of("perplexity").signed(value, like=4.263) == expected


def test_shares_are_in_percent_and_points_whatever_stands_beside_them() -> None:
    scale = scale_of("accuracy")
    assert (scale.value(0.842), scale.value(0.01, 0.842), scale.signed(-0.031, 0.842)) == ("84.20", "1.00", "−3.10")
    assert (scale.heading, scale.difference, scale.half_width(0.8, 0.9)) == ("accuracy (%)", "points", "5.00")
    assert scale_of("mcc").heading == "MCC (× 100)"


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (0.42, 4.27, "+9.8 %"), (-0.0013, 4.27, "−0.03 %"), (0.0, 4.0, "0.00 %"), (1224.0, 4.0, "+30,600 %"),
        (1.0, None, "–"), (1.0, 0.0, "–"), (1.0, math.inf, "–"), (None, 4.0, "–"),
    ],
)  # fmt: skip
def test_changes_are_shares_of_what_changes(value: float | None, base: float | None, expected: str) -> None:
    assert relative(value, base) == expected


def test_every_metric_has_a_heading_and_lower_is_better_is_said_beside_the_axis() -> None:
    assert {name: scale_of(name).heading for name in METRICS} == {
        "accuracy": "accuracy (%)", "macro_f1": "macro-F1 (%)", "f1": "F1 (%)", "mcc": "MCC (× 100)",
        "precision": "precision (%)", "recall": "recall (%)", "specificity": "specificity (%)",
        "macro_precision": "macro-precision (%)", "macro_recall": "macro-recall (%)",
        "roc_auc": "ROC AUC (× 100)", "average_precision": "average precision (× 100)",
        "log_loss": "log loss (nats per example)", "brier": "Brier score (× 100)", "calibration_error": "calibration error (%)",
        "perplexity": "perplexity (per token)", "word_perplexity": "word perplexity", "bits_per_byte": "bits per byte",
        "loss": "loss (nats per token)", "token_accuracy": "token accuracy (%)",
    }  # fmt: skip
    assert scale_of("perplexity").axis == "perplexity, lower is better"
    assert scale_of("accuracy").axis == "accuracy (%)"
