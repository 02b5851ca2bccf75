"""`train_on`: another task's training split, with everything else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_mirror import make_everything, write_split

from fairtune.core.errors import DataError
from fairtune.tasks import load_task


@pytest.fixture(autouse=True)
def _mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTUNE_MIRROR", str(make_everything(tmp_path / "mirror")))


def test_only_the_training_split_is_the_others() -> None:
    plain, other = load_task("xnli/de"), load_task("xnli/de/translate-train")
    task = load_task("xnli/de", train_on="xnli/de/translate-train")
    hashes = task.facts().hashes
    assert hashes["train"] == other.facts().hashes["train"] != plain.facts().hashes["train"]
    assert {hashes[name] for name in ("validation", "test")} == {
        plain.facts().hashes[name] for name in ("validation", "test")
    }
    assert (task.name, task.metric, task.labels) == (plain.name, plain.metric, plain.labels)


@pytest.mark.parametrize("other", ["cola", "mnli"])
def test_other_labels_are_refused(other: str) -> None:
    with pytest.raises(
        DataError, match=rf"train_on: task '{other}' has the labels .*'sst2' has negative, positive and 1"
    ):
        load_task("sst2", train_on=other)


def test_one_text_is_not_trained_on_pairs(tmp_path: Path) -> None:
    rows = [{"a": f"text {i}", "b": f"other {i}", "label": ("negative", "positive")[i % 2]} for i in range(60)]
    file = write_split(tmp_path, "own", "train", rows)
    pairs = {"train": str(file), "text": ["a", "b"], "labels": ["negative", "positive"]}
    with pytest.raises(DataError, match=r"train_on: task 'sst2' .* 1 text\(s\) an example; 'files' .* and 2"):
        load_task(pairs, train_on="sst2")


@pytest.mark.parametrize(
    ("other", "words"),
    [("ssst2", "Did you mean 'sst2'"), ("tinystories", "is text for language models")],
)
def test_a_task_that_cannot_be_trained_on_is_reported(other: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_task("sst2", train_on=other)


def test_an_unknown_name_is_reported_for_train_on_and_not_for_the_task() -> None:
    with pytest.raises(
        DataError, match=r"^train_on: task 'movie-review': not in the catalogue.*Did you mean 'movie-reviews'"
    ):
        load_task("movie-reviews", train_on="movie-review")
