"""Training data that holds what is reported is refused when the plan is made, unless it is fixed or allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.tasks.test_data_card import clean, distinct, mirrored

from fairtune.core.errors import DataError
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from fairtune.tasks import load_task
from fairtune.tasks.card.contamination import check_contamination
from fairtune.tasks.definitions import REVIEWS
from fairtune.tasks.reading.rows import read_rows
from fairtune.tasks.stores import package_file
from fairtune.tasks.text_hashes import exact_and_normal


@pytest.fixture
def plan(tiny_model: Path) -> Any:
    def made(task: Any, **fields: Any) -> Plan:
        return make_plan(
            load_study(
                {
                    "study": "s",
                    "task": task,
                    "model": str(tiny_model),
                    "arms": {"a": {}},
                    "compare": {"to": "a"},
                    **fields,
                }
            )
        )

    return made


def leaking(folder: Path, leaked: int) -> dict[str, Any]:
    """A task of 20 reported texts, some of which are also trained on."""
    test = distinct("test", 20)
    shouted = [(text.upper() + "!", label) for text, label in test[:leaked]]
    return clean(folder, train=[*distinct("train", 40), *shouted], test=test)


def test_more_than_a_tenth_is_refused_with_what_to_do(tmp_path: Path, plan: Any) -> None:
    with pytest.raises(DataError) as caught:
        plan(leaking(tmp_path, 3))
    message = str(caught.value)
    assert "3 of the 20 test texts (15.0 %) are in the training split" in message
    assert all(way in message for way in ("dedupe: true", "another task", "allow_contamination: true"))
    assert "\n" not in message


@pytest.mark.parametrize("leaked", [0, 2])
def test_a_tenth_is_left_to_the_card(tmp_path: Path, plan: Any, leaked: int) -> None:
    assert plan(leaking(tmp_path, leaked)).notes == ()


def test_allowed_it_runs_and_is_recorded(tmp_path: Path, plan: Any) -> None:
    made = plan(leaking(tmp_path, 3), allow_contamination=True)
    (note,) = made.as_json()["notes"]
    assert "3 of the 20 test texts (15.0 %)" in note
    assert "The study allows it" in note


def test_dedupe_takes_it_out(tmp_path: Path, plan: Any) -> None:
    made = plan(leaking(tmp_path, 3), dedupe=True)
    assert made.notes == ()
    assert made.task.rows == {"train": 40, "validation": 10, "test": 20}


def test_allowing_changes_no_run(tmp_path: Path, plan: Any) -> None:
    spec = leaking(tmp_path, 2)
    assert plan(spec).hash == plan(spec, allow_contamination=True).hash


def package_hashes(source: str, folder: Path) -> Any:
    file = package_file(REVIEWS)
    rows = read_rows(file, ["text", "source"], "label", folder / source).where_equal("source", source)
    return exact_and_normal([pa.concat_arrays(batch.column(0) for batch in rows.arrow(["text"]))])[1]


def test_the_movie_reviews_hold_most_of_sst2(tmp_path: Path) -> None:
    mirrored("sst2")
    package, task = package_hashes("rotten_tomatoes", tmp_path), load_task("sst2")
    found = {name: int(np.isin(task.splits[name].normal, package).sum()) for name in ("validation", "test")}
    assert found == {"validation": 731, "test": 1_431}
    assert (len(package), len(task.splits["validation"])) == (8_530, 872)
    reported = load_task("movie-reviews").splits["test"]
    assert (int(np.isin(reported.normal, task.splits["train"].normal).sum()), len(reported)) == (598, 1_242)


@pytest.mark.parametrize(("task", "train_on"), [("sst2", "movie-reviews"), ("movie-reviews", "sst2")])
def test_sst2_and_the_movie_reviews_are_refused_both_ways(task: str, train_on: str) -> None:
    mirrored("sst2")
    with pytest.raises(DataError, match="are in the training split"):
        check_contamination(load_task(task, train_on), train_on, allowed=False)
    assert check_contamination(load_task(task, train_on, dedupe=True), train_on, allowed=False) == ()


@pytest.mark.skipif(not os.environ.get("FAIRTUNE_MIRROR"), reason="FAIRTUNE_MIRROR is not set")
@pytest.mark.parametrize("name", ["sst2", "cola", "mrpc", "mnli", "xnli/de", "imdb", "ag_news", "movie-reviews"])
def test_no_task_of_the_catalogue_is_refused_as_it_is(name: str) -> None:
    if name != "movie-reviews":
        mirrored(name)
    assert check_contamination(load_task(name), None, allowed=False) == ()
