"""A metric is one entry in one table: it is then computed, selected on, compared and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from made_ledger import STUDY, ArmSpec, make_study

from fairtune.analysis.resampling import Classified, metric_from_totals
from fairtune.core.files import read_json, write_json
from fairtune.report.writer import write_report
from fairtune.settings.file_task import MetricName
from fairtune.settings.metrics import METRICS, Metric, classification_metrics, from_sums, text_metrics

OF_TWO = ["precision", "recall", "specificity"]


def balanced_accuracy(counts: np.ndarray) -> np.ndarray:
    return np.asarray((np.diagonal(counts, axis1=-2, axis2=-1) / counts.sum(axis=-1)).mean(axis=-1))


@pytest.fixture
def balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Metric(
        "balanced accuracy", "classify", lower_is_better=False, shown="percent", from_totals=balanced_accuracy
    )
    monkeypatch.setitem(METRICS, "balanced_accuracy", entry)


@pytest.mark.usefixtures("balanced")
def test_it_is_computed_from_predictions_and_from_draws() -> None:
    labels, predicted = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = classification_metrics(labels, np.eye(2)[predicted])
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
    drawn = metric_from_totals("balanced_accuracy")(Classified(labels, predicted, 2).totals(np.ones((2, 4))))
    assert drawn.tolist() == [found["balanced_accuracy"]] * 2


@pytest.mark.usefixtures("balanced")
def test_a_study_is_decided_and_reported_by_it(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([330, 331, 329]), "arm": ArmSpec([360, 362, 361])})
    file = made.runs / STUDY / "study.json"
    plan = read_json(file)
    assert plan is not None
    plan["task"]["metric"] = "balanced_accuracy"
    write_json(file, plan)
    results = made.results()
    comparison = results.comparison("arm")
    assert comparison is not None
    assert comparison.verdict.word == "better"
    assert comparison.found.low is not None
    files = {kind: path.read_text() for kind, path in write_report(results).items()}
    assert "balanced accuracy (%)" in files["html"]
    assert "balanced accuracy (%)" in files["markdown"]
    row = json.loads(files["json"])["rows"][0]
    assert list(row["summaries"]) == ["balanced_accuracy", "accuracy", "macro_f1", "f1", "mcc", *OF_TWO]


@pytest.mark.usefixtures("balanced")
def test_a_classifier_is_scored_by_it_with_an_interval_and_its_card_and_summary_have_it() -> None:
    from fairtune.classifier.evaluation import overall
    from fairtune.classifier.model_card import _figures as card_lines
    from fairtune.cli.train_summary import figure_text

    found = {figure["metric"]: figure for figure in overall(np.array([[20, 10], [2, 28]]))}
    assert list(found) == ["accuracy", "macro_f1", "mcc", "balanced_accuracy", "f1", *OF_TWO]
    own = found["balanced_accuracy"]
    assert own["value"] == pytest.approx((20 / 30 + 28 / 30) / 2)
    assert 0.6 < own["low"] < own["value"] < own["high"] < 0.95
    assert any(line.startswith("| balanced accuracy | 80.00 |") for line in card_lines(list(found.values())))
    assert figure_text(own, ["a", "b"]).startswith("balanced accuracy 80.00 [")


def test_one_that_is_no_share_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairtune.classifier.evaluation import overall
    from fairtune.classifier.model_card import _figures as card_lines

    entry = Metric(
        "cost", "classify", lower_is_better=True, shown="plain", from_totals=lambda counts: 3 * counts[..., 0, 1]
    )
    monkeypatch.setitem(METRICS, "cost", entry)
    lines = card_lines(overall(np.array([[20, 10], [2, 28]])))
    assert lines[0].startswith("| metric |")
    assert any(line.startswith("| cost | 30.00 |") for line in lines)


@pytest.mark.parametrize("classes", [2, 3])
def test_one_for_two_classes_is_refused_with_three(monkeypatch: pytest.MonkeyPatch, classes: int) -> None:
    from fairtune import TextClassifier
    from fairtune.classifier import settings
    from fairtune.classifier.errors import SettingsError

    entry = Metric(
        "specificity", "classify", lower_is_better=False, shown="percent", classes="two classes",
        from_totals=lambda counts: counts[..., 0, 0] / counts[..., 0].sum(axis=-1),
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "specificity", entry)
    monkeypatch.setattr(
        settings, "CHOICES", (*settings.CHOICES, "specificity")
    )  # made of the table when it is imported
    assert ("specificity" in classification_metrics(np.arange(classes), np.eye(classes))) == (classes == 2)
    if classes == 3:
        with pytest.raises(SettingsError, match="specificity is for two classes, and there are 3; use accuracy"):
            TextClassifier(metric="specificity").fit(
                [f"text {n}" for n in range(60)], ["abc"[n % 3] for n in range(60)]
            )


def test_one_of_language_models_is_computed_from_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Metric(
        "nats per word", "language_model", lower_is_better=True, shown="plain",
        from_totals=from_sums(lambda sums: sums.nll / sums.words),
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "nats_per_word", entry)
    assert text_metrics(*(np.array([n]) for n in (6.0, 5, 4, 3, 2)))["nats_per_word"] == 2.0  # type: ignore[arg-type]


def test_a_file_task_may_name_any_metric_of_classifiers() -> None:
    assert get_args(MetricName) == tuple(name for name, metric in METRICS.items() if metric.kind == "classify")
