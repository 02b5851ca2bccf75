"""Other people's tasks: declared in one call, refused loudly where something is wrong, then like any other of the catalogue."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.core.errors import DataError
from fairtune.tasks import load_task, register_task, registered_tasks, task_names
from fairtune.tasks.catalogue import unknown
from fairtune.tasks.corpora import corpus_names, load_corpus
from fairtune.tasks.registry import _registered

ROWS = [{"body": f"text number {i} is {('bad', 'good')[i % 2]}", "queue": ("no", "yes")[i % 2]} for i in range(80)]


def rows() -> list[dict[str, Any]]:
    return ROWS


def declare(name: str = "tickets", **changes: Any) -> None:
    given: dict[str, Any] = {"about": "Tickets by queue.", "licence": "MIT", "train": rows, "labels": ["no", "yes"]}
    register_task(name, **{**given, "text": "body", "label": "queue", **changes})


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    _registered.clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with (tmp_path / "tickets.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, ["body", "queue"])
        writer.writeheader()
        writer.writerows(ROWS)
    return tmp_path / "tickets.csv"


def test_rows_of_a_function_are_the_task_that_the_same_rows_in_a_file_are(file: Path) -> None:
    declare()
    declare("in-a-file", train=file, metric="macro_f1")
    own = load_task({"name": "x", "train": str(file), "text": "body", "label": "queue", "labels": ["no", "yes"]})
    found, filed = load_task("tickets"), load_task("in-a-file")
    assert found.fingerprint == filed.fingerprint == own.fingerprint
    assert found.labels == ("no", "yes")
    assert (found.name, found.metric, filed.metric) == ("tickets", "accuracy", "macro_f1")
    assert found.source == f"files rows of {__name__}.rows"
    assert list(registered_tasks()) == ["tickets", "in-a-file"]
    assert task_names()[-2:] == ["tickets", "in-a-file"]


def test_changed_rows_are_another_task_and_not_an_old_one_out_of_the_cache() -> None:
    given = list(ROWS)
    declare(train=lambda: given)
    before = load_task("tickets").fingerprint
    assert load_task("tickets").fingerprint == before
    given[0] = {**given[0], "body": "something else"}
    assert load_task("tickets").fingerprint != before


def test_splits_that_are_given_are_taken_and_others_held_out() -> None:
    declare(test=lambda: ROWS[:10], holdout={"validation": 0.3})
    task = load_task("tickets")
    assert len(task.splits["test"]) == 10
    assert len(task.splits["train"]) + len(task.splits["validation"]) == 80
    assert 10 < len(task.splits["validation"]) < 40


def test_text_for_language_models_is_registered_too(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("\n\n".join(f"note {i}\nits second line" for i in range(50)))
    register_task("notes", kind="language_model", about="Notes.", licence="mine", train=tmp_path / "notes.txt")
    assert corpus_names()[-1] == "notes"
    documents = [
        text
        for split in ("train", "validation", "test")
        for some in load_corpus("notes").documents(split)
        for text in some
    ]
    assert len(documents) == 50
    assert "notes" not in task_names()
    with pytest.raises(DataError, match="text for language models"):
        load_task("notes")


def test_it_is_listed_with_the_others_and_by_itself(tmp_path: Path) -> None:
    declare(train=tmp_path / "gone.csv")
    answer = json.loads(CliRunner().invoke(app, ["tasks", "tickets", "--json"]).output)["tasks"]["tickets"]
    assert (answer["about"], answer["licence"], answer["labels"]) == ("Tickets by queue.", "MIT", ["no", "yes"])
    assert answer["uses"]["train"] == {"split": "train", "rows": None, "share": "70%"}
    assert answer["missing"] == [f"there is no {tmp_path / 'gone.csv'}"]
    shown = " ".join(CliRunner().invoke(app, ["tasks"]).output.split())
    assert "tickets classify, 2 70% of all 10% of all 20% of all accuracy gone.csv; licence: MIT" in shown
    assert "Did you mean 'tickets'" in unknown("ticket")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "sst2"}, "fairtune's own catalogue"),
        ({"name": "a name"}, "name: "),
        ({"about": " "}, "about must be one line"),
        ({"train": "rows.csv"}, "is a relative path, which depends"),
        ({"train": 3}, "give a file, a folder or a function"),
        ({"metric": "perplexity"}, "metric: .*accuracy.*mcc"),
        ({"labels": ["one"]}, "labels: .* 2 items"),
        ({"labels": "one"}, "labels: "),
        ({"text": ["a", "b", "c"]}, "text: "),
        ({"holdout": {"validation": 2}}, "holdout.validation: "),
        ({"kind": "regress"}, "kind: "),
        ({"kind": "language_model"}, "is read from files"),
    ],
)
def test_what_would_surprise_later_is_refused_now(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match="^task .*" + words):
        declare(**changes)
    assert not registered_tasks()


def test_a_name_is_given_once() -> None:
    declare()
    with pytest.raises(ValueError, match="task 'tickets' is registered twice"):
        declare()


def failing() -> Iterator[dict[str, Any]]:
    yield ROWS[0]
    raise ConnectionError("no such host\nand more")


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (failing, r"train rows cannot be had: rows of .*failing failed at row 2 \(ConnectionError: no such host\)"),
        (lambda: ["text"], "failed at row 1 .* A row is a mapping"),
        (lambda: [{"body": "a"}], "failed at row 1 .KeyError: 'queue'"),
        (
            lambda: [{"body": "a", "queue": object()}],
            "failed at row 1 .* A row is a mapping from column to text or number",
        ),
        (lambda: [*ROWS, {"body": 3, "queue": "no"}], "train rows: row 81: column 'body' holds 3, not a text"),
        (lambda: [*ROWS, {"body": "a", "queue": "maybe"}], "label 'maybe'"),
        (list, "train rows: the file has no rows"),
    ],
)
def test_a_function_that_fails_or_gives_no_rows_is_one_sentence(give: Callable[[], Any], words: str) -> None:
    declare(train=give, holdout={"validation": 0.1, "test": 0.1})
    with pytest.raises(DataError, match="task 'tickets'.*" + words):
        load_task("tickets")
