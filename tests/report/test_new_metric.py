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
    assert list(row["summaries"]) == ["balanced_accuracy", "accuracy", "macro_f1", "f1", "mcc"]


def test_one_of_language_models_is_computed_from_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Metric(
        "nats per word", "language_model", lower_is_better=True, shown="plain",
        from_totals=from_sums(lambda sums: sums.nll / sums.words),
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "nats_per_word", entry)
    assert text_metrics(*(np.array([n]) for n in (6.0, 5, 4, 3, 2)))["nats_per_word"] == 2.0  # type: ignore[arg-type]


def test_a_file_task_may_name_any_metric_of_classifiers() -> None:
    assert get_args(MetricName) == tuple(name for name, metric in METRICS.items() if metric.kind == "classify")
