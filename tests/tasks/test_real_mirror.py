"""The published data themselves, where FAIRTUNE_MIRROR has them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from fairtune.tasks import load_task
from fairtune.tasks.definitions import LANGUAGES

MIRROR = os.environ.get("FAIRTUNE_MIRROR", "")


@pytest.fixture(autouse=True)
def _mirrored(request: pytest.FixtureRequest) -> None:
    """Skip a test whose task the mirror lacks."""
    name = request.node.callspec.params["name"] if hasattr(request.node, "callspec") else "sst2"
    if not MIRROR or not (Path(MIRROR) / name).is_dir():
        pytest.skip(f"FAIRTUNE_MIRROR has no {name}")


@pytest.mark.parametrize("name", ["sst2"])
def test_sst2_is_complete_and_quickly_read(name: str) -> None:
    started = time.monotonic()
    task = load_task(name)
    assert time.monotonic() - started < 5, "about half a second on an idle machine"
    assert task.facts().rows == {"train": 67_349, "validation": 872, "test": 1_821}
    assert task.source == "local mirror; test split"
    assert [round(split.labels.mean(), 3) for split in task.splits.values()] == [0.558, 0.509, 0.499]


@pytest.mark.parametrize("name", ["mnli"])
def test_mnli_is_reported_on_a_balanced_half(name: str) -> None:
    task = load_task(name)
    rows = task.facts().rows
    assert (rows["validation"], rows["test"]) == (4_907, 4_908)
    counts = [np.bincount(task.splits[split].labels) for split in ("validation", "test")]
    assert np.abs(counts[0] - counts[1]).max() <= 1


@pytest.mark.parametrize("name", [f"xnli/{language}" for language in LANGUAGES])
def test_every_language_is_complete_and_balanced(name: str) -> None:
    task = load_task(name)
    rows = task.facts().rows
    assert (rows["validation"], rows["test"]) == (2_490, 5_010)
    assert np.bincount(task.splits["test"].labels).tolist() == [1_670] * 3


@pytest.mark.parametrize("name", ["xnli/de"])
def test_the_labels_mean_what_they_are_called(name: str) -> None:
    """Hypotheses of contradictions deny; those of entailments seldom do."""
    test = load_task(name).splits["test"]
    denies = np.array([any(word in f" {h.lower()} " for word in (" nicht ", " nie ", " kein")) for _, h in test.texts])
    assert denies[test.labels == 2].mean() > 2 * denies[test.labels == 0].mean()
