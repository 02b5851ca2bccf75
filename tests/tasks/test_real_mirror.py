"""The published data themselves, where FAIRTUNE_MIRROR has them."""

from __future__ import annotations

import os
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
def test_sst2_is_complete(name: str) -> None:
    task = load_task(name)
    assert task.facts().rows == {"train": 67_349, "validation": 872, "test": 1_821}
    assert task.source == "local mirror; test split"
    assert [round(split.labels.mean(), 3) for split in task.splits.values()] == [0.558, 0.509, 0.499]


@pytest.mark.parametrize(("name", "halves"), [("mnli", (4_907, 4_908)), ("cola", (521, 522))])
def test_a_task_without_test_labels_is_reported_on_a_balanced_half(name: str, halves: tuple[int, int]) -> None:
    task = load_task(name)
    assert (task.facts().rows["validation"], task.facts().rows["test"]) == halves
    counts = [np.bincount(task.splits[split].labels) for split in ("validation", "test")]
    assert np.abs(counts[0] - counts[1]).max() <= 1
    firsts = [{texts[0] for texts in task.splits[split].texts} for split in ("validation", "test")]
    assert not firsts[0] & firsts[1], "no premise is in both halves"


@pytest.mark.parametrize(
    ("name", "rows", "shares"),
    [
        ("mrpc", (3_668, 408, 1_725), (0.674, 0.684, 0.665)),
        ("cola", (8_551, 521, 522), (0.704, 0.691, 0.692)),
        ("imdb", (23_775, 1_225, 25_000), (0.499, 0.514, 0.5)),
    ],
)
def test_a_complete_task_has_the_known_sizes_and_balance(
    name: str, rows: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    task = load_task(name)
    assert tuple(task.facts().rows.values()) == rows
    assert tuple(round(float(split.labels.mean()), 3) for split in task.splits.values()) == shares
    assert "published" not in task.source, "nothing is a part"


@pytest.mark.parametrize("name", ["ag_news"])
def test_a_part_of_a_task_is_called_one(name: str) -> None:
    task = load_task(name)
    assert task.facts().rows["test"] == 7_600
    assert np.bincount(task.splits["test"].labels).tolist() == [1_900] * 4
    assert "of the 120,000 published training rows" in task.source


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
