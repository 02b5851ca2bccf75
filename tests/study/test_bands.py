"""Published figures: found by whatever a study calls a model, in the metric's own unit, with split and source."""

from __future__ import annotations

import pytest

from fairtune.settings.bands import find_band


@pytest.mark.parametrize(
    ("model", "task", "metric", "low", "high"),
    [
        ("google-bert/bert-base-uncased", "sst2", "accuracy", 0.927, 0.932),
        ("bert-base-uncased", "mnli", "accuracy", 0.845, 0.847),
        ("google-bert/bert-base-uncased@main", "mnli/matched", "accuracy", 0.845, 0.847),
        ("minilm", "sst2", "accuracy", 0.915, 0.915),
        ("nreimers/MiniLM-L6-H384-uncased", "mrpc", "f1", 0.889, 0.889),
        ("prajjwal1/bert-mini", "cola", "mcc", 0.0, 0.0),
    ],
)
def test_bands_are_found_by_every_name(model: str, task: str, metric: str, low: float, high: float) -> None:
    band = find_band(model, task, metric)
    assert band is not None
    assert (band.low, band.high) == (low, high)
    assert band.split in ("dev", "test")
    assert band.source in str(band)


@pytest.mark.parametrize(
    ("model", "task", "metric"),
    [
        ("minilm", "titles", "accuracy"),
        ("minilm", "sst2", "mcc"),
        ("somebody/bert-base-uncased", "sst2", "accuracy"),
    ],
)
def test_what_is_not_published_is_not_made_up(model: str, task: str, metric: str) -> None:
    assert find_band(model, task, metric) is None


def test_a_band_reads_as_reports_show_it() -> None:
    band = find_band("minilm", "sst2", "accuracy")
    assert str(band).startswith(
        "accuracy of MiniLM-L6-H384 on sst2, 91.5 % (dev, microsoft/unilm README; minilm is all-MiniLM-L6-v2"
    )
    other = find_band("nreimers/MiniLM-L6-H384-uncased", "sst2", "accuracy")
    assert other is not None
    assert other.note == ""
    assert "56.3 to 58.9 (" in str(find_band("bert-base-uncased", "cola", "mcc"))
