"""What `dedupe: true` takes out, what it never touches, and when it refuses."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune.core.errors import DataError
from fairtune.tasks import Task, load_task
from fairtune.tasks.duplicates import find_duplicates, repeated, shared
from fairtune.tasks.text_hashes import normal_form

Row = tuple[str, ...]
"""Texts, then the label."""


def write(file: Path, rows: Sequence[Row]) -> str:
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow([*["text", "pair"][: len(rows[0]) - 1], "label"])
        writer.writerows(rows)
    return str(file)


def files(folder: Path, **splits: Sequence[Row]) -> dict[str, Any]:
    """A task of files as a study gives it."""
    named = {name: write(folder / f"{name}.csv", rows) for name, rows in splits.items()}
    width = len(splits["train"][0]) - 1
    return {**named, "text": ["text", "pair"][:width], "label": "label", "labels": ["no", "yes"]}


def rows(task: Task, split: str) -> list[Row]:
    found = task.splits[split]
    return [(*texts, task.labels[label]) for texts, label in zip(found.texts, found.labels, strict=True)]


SMALL: dict[str, Sequence[Row]] = {
    "train": [
        ("Only here.", "no"),
        ("Twice", "yes"),
        ("twice!", "yes"),
        ("In the test", "no"),
        ("In the validation", "no"),
        ("Disputed", "no"),
        ("disputed", "yes"),
        ("Only here, too", "yes"),
    ],
    "validation": [("in the validation", "yes"), ("In both", "no"), ("Mine", "no"), ("mine", "no")],
    "test": [("in the TEST...", "yes"), ("in both", "yes"), ("in both", "yes")],
}


def test_takes_out_the_repeated_the_contradictory_and_the_shared(tmp_path: Path) -> None:
    task = load_task(files(tmp_path, **SMALL), dedupe=True)
    assert rows(task, "train") == [("Only here.", "no"), ("Twice", "yes"), ("Only here, too", "yes")]
    assert rows(task, "validation") == [("in the validation", "yes"), ("Mine", "no"), ("mine", "no")]
    assert task.source.endswith("; deduplicated: 5 train rows and 1 validation rows removed")


def test_each_row_counts_under_the_first_reason_that_holds(tmp_path: Path) -> None:
    _, removal = find_duplicates(load_task(files(tmp_path, **SMALL)))
    assert (removal.in_test, removal.in_validation, removal.contradictory, removal.repeated) == (1, 1, 2, 1)
    assert (removal.train, removal.validation_in_test) == (5, 1)


def test_pairs_are_the_same_only_as_a_whole(tmp_path: Path) -> None:
    pairs: dict[str, Sequence[Row]] = {
        "train": [
            ("It rains", "It is wet", "yes"),
            ("It rains", "It is dry", "no"),
            ("it rains", "it is wet!", "yes"),
            ("It is wet", "It rains", "no"),
            ("Seen", "there", "no"),
        ],
        "validation": [("a", "b", "no")],
        "test": [("seen", "There.", "no"), ("It rains", "I sleep", "yes")],
    }
    task = load_task(files(tmp_path, **pairs), dedupe=True)
    assert rows(task, "train") == [pairs["train"][0], pairs["train"][1], pairs["train"][3]]


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_shared_repeated_or_disputed_afterwards(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)

    def some(count: int) -> list[Row]:
        texts = [
            ("WORD {}", "word {}!", "word  {}")[form].format(i)
            for form, i in generator.integers(0, (3, 40), (count, 2))
        ]
        return [
            (text, ("no", "yes")[label]) for text, label in zip(texts, generator.integers(0, 2, count), strict=True)
        ]

    lone: list[Row] = [("nowhere else", "no"), ("only this once", "yes")]
    made = {"train": some(30) + lone, "validation": [*some(8), ("select by me", "no")], "test": some(8)}
    spec = files(tmp_path, **made)
    before, task = load_task(spec), load_task(spec, dedupe=True)
    train, validation, test = (task.splits[name] for name in ("train", "validation", "test"))
    assert not shared(train.normal, test.normal).any()
    assert not shared(train.normal, validation.normal).any()
    assert not shared(validation.normal, test.normal).any()
    assert not repeated(train.normal).any()
    assert rows(task, "test") == made["test"]
    assert {*lone} <= set(rows(task, "train")) <= set(made["train"])
    labels_of: dict[str, set[str]] = {}
    for text, label in made["train"]:
        labels_of.setdefault(normal_form(text), set()).add(label)
    elsewhere = {normal_form(text) for text, _ in made["validation"] + made["test"]}
    wanted = {text for text, labels in labels_of.items() if len(labels) == 1 and text not in elsewhere}
    assert sorted(normal_form(text) for text, _ in rows(task, "train")) == sorted(wanted)
    drop, removal = find_duplicates(before)
    assert removal.train == int(drop["train"].sum()) == len(before.splits["train"]) - len(train)
    assert find_duplicates(task)[1].train == 0, "doing it again changes nothing"


@pytest.mark.parametrize(
    ("validation", "test", "message"),
    [
        (
            "v",
            ["A b", "C, d"],
            r"no training example of class no, yes. Of 2 .* takes out 2 \(2 also in the test split\)",
        ),
        ("v", ["A b", "x"], "no training example of class no.*set dedupe: false"),
        ("x", ["X", "y"], "leaves nothing to select by"),
    ],
)
def test_refuses_when_nothing_or_a_class_is_gone(
    tmp_path: Path, validation: str, test: list[str], message: str
) -> None:
    tested = list(zip(test, ("no", "yes"), strict=True))
    spec = files(tmp_path, train=[("a b", "no"), ("c d", "yes")], validation=[(validation, "no")], test=tested)
    with pytest.raises(DataError, match=message):
        load_task(spec, dedupe=True)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Do n't do it .", "don't do it", True),
        ("Ｆｕｌｌ width", "full WIDTH", True),
        ("it ended 3-2", "it ended 3:2", True),
        ("it ended 3-2", "it ended 32", False),
        ("1 000 men", "1,000 men", True),
        ("a 1 b", "a1b", True),
        ("!?", "!!", False),
        ("schön", "schon", False),
        ("Straße", "STRASSE", True),
        ("", " ", True),
    ],
)
def test_what_counts_as_the_same_text(one: str, other: str, same: bool) -> None:
    assert (normal_form(one) == normal_form(other)) is same


def test_the_same_files_under_another_name_keep_that_name(tmp_path: Path) -> None:
    spec = files(tmp_path, **SMALL)
    found = [
        load_task({**spec, "name": name, "metric": metric}, dedupe=True) for name, metric in (("a", "mcc"), ("b", "f1"))
    ]
    assert [(task.name, task.metric) for task in found] == [("a", "mcc"), ("b", "f1")]
