"""augment: what happens to words, on what the draws depend, functions of the user's, and that only training texts change."""

# ruff: noqa: F811 - fixtures of another room are imported by their names
from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from typing import Any

import pytest

from fairtune.core.errors import DataError, FairtuneError
from fairtune.methods.augment import Augment, AugmentConfig, augment_texts, changed
from fairtune.methods.base import TrainingData
from fairtune.methods.registry import parse_method_use
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture

SHORT: dict[str, Any] = {"steps": 8, "examples": 64, "eval_examples": 20, "evaluate": "epoch"}
LONG = " ".join(f"word{number}" for number in range(2000))


asked: list[list[str]] = []


def shout(texts: list[str]) -> list[str]:
    asked.append(texts)
    return [text.upper() for text in texts]


def too_few(texts: list[str]) -> list[str]:
    return texts[1:]


def one_is_none(texts: list[str]) -> list[Any]:
    return [*texts[1:], None]


def one_text(texts: list[str]) -> str:
    return texts[0]


def nothing(_: list[str]) -> None:
    return None


def fails(_: list[str]) -> list[str]:
    raise RuntimeError("no translator\nat all")


def once_more(texts: list[str]) -> list[str]:
    """Never the same answer, as a translator that samples."""
    asked.append(texts)
    return [f"{text} good" if (len(asked) + number) % 2 else f"{text} bad" for number, text in enumerate(texts)]


class Translators:
    @staticmethod
    def shout(texts: list[str]) -> list[str]:
        return [text.upper() for text in texts]


@pytest.fixture(autouse=True)
def _forget() -> None:
    asked.clear()


def test_as_many_words_are_left_out_and_exchanged_as_asked_for() -> None:
    draws = random.Random(0)
    kept = changed(LONG, draws, 0.3, 0, 0).split()
    assert len(kept) == pytest.approx(1400, rel=0.05)
    assert sorted(kept, key=lambda word: int(word[4:])) == kept, "in their order"
    swapped = changed(LONG, draws, 0, 0.1, 0).split()
    assert Counter(swapped) == Counter(LONG.split())
    moved = [int(word[4:]) - place for place, word in enumerate(swapped)]
    assert set(moved) == {-1, 0, 1}, "a word moves once, by one place"
    assert sum(map(bool, moved)) / 2 == pytest.approx(2000 * 0.1 / 1.1, rel=0.15)
    slips = changed(LONG, draws, 0, 0, 0.2).split()
    assert sum(a != b for a, b in zip(slips, LONG.split(), strict=True)) == pytest.approx(400, rel=0.15)


TEXTS = [f"row {number}: one two three four five six seven eight nine ten" for number in range(40)]


def test_a_rows_draw_depends_on_seed_epoch_and_row_alone() -> None:
    first = augment_texts(TEXTS, epoch=0, seed=1)
    assert augment_texts(TEXTS, epoch=0, seed=1) == first
    assert augment_texts(TEXTS, epoch=1, seed=1) != first
    assert augment_texts(TEXTS, epoch=0, seed=2) != first
    others = ["something else entirely"] * 20 + TEXTS[20:]
    assert augment_texts(others, epoch=0, seed=1)[20:] == first[20:]
    assert augment_texts(TEXTS[:7], epoch=0, seed=1) == first[:7]
    state = random.getstate()
    augment_texts(TEXTS)
    assert random.getstate() == state, "nobody else's draws are touched"


def test_golden_texts() -> None:
    """What is drawn is part of what a run is; a change here changes every run and must raise the protocol."""
    text = "the quick brown fox jumps over the lazy dog"
    found = [augment_texts([text], epoch=epoch, seed=3, delete=0.2, swap=0.2, typo=0.2)[0] for epoch in range(3)]
    assert found == [
        "he quick fox brwn jumps over the lazy odg",
        "uick the brown jumps fox the oveer lazy dog",
        "the quick brown fox over the dog",
    ]


def test_a_function_is_asked_once_for_each_text_and_words_stay_unless_asked_for() -> None:
    method = Augment(AugmentConfig.model_validate({"function": shout, "share": 0.5}), seed=4)
    rows = [("one two",), ("one two",), ("three four",), ("five six",), ("seven eight",), ("nine ten",)]
    epochs = [method.texts(rows, epoch) for epoch in range(12)]
    assert all(new in (old, (old[0].upper(),)) for found in epochs for old, new in zip(rows, found, strict=True))
    texts = [text for call in asked for text in call]
    assert sorted(texts) == sorted({text for (text,) in rows}), "once each, however often it is needed"
    assert len(asked[0]) < 5, "no more than the epoch needs"
    assert augment_texts(["one two three"] * 9, function=shout, delete=0.5)[0] in (
        "ONE", "TWO", "THREE", "ONE TWO", "ONE THREE", "TWO THREE", "ONE TWO THREE",
    )  # fmt: skip


def test_a_function_goes_into_a_study_by_its_name() -> None:
    use = parse_method_use({"augment": {"function": shout}})
    assert use.as_json() == {"augment": {
        "share": 1.0, "delete": 0.0, "swap": 0.0, "typo": 0.0, "function": "tests.methods.test_augment:shout",
    }}  # fmt: skip
    assert parse_method_use(json.loads(json.dumps(use.as_json()))) == use
    static = AugmentConfig.model_validate({"function": Translators.shout})
    assert static.function == "tests.methods.test_augment:Translators.shout"
    assert augment_texts(["a b"], function=static.function) == ["A B"]


@pytest.mark.parametrize("given", [lambda texts: texts, partial(shout), str.upper, random.Random(0).shuffle])
def test_a_function_that_has_no_name_of_its_own_is_refused_with_what_to_do(given: Any) -> None:
    with pytest.raises(
        FairtuneError, match=r"function: .*cannot be found by its name.*define it with `def` at the top"
    ):
        augment_texts(["a"], function=given)


@pytest.mark.parametrize(("name", "expected"), [
    ("no_such_module:f", "No module named 'no_such_module'.*Python looks in the folder where fairtune was started"),
    (f"{__name__}:nowhere", "has no attribute 'nowhere'"),
    (f"{__name__}:LONG", "is a str, which cannot be called"),
])  # fmt: skip
def test_a_function_that_is_not_there_is_reported_before_the_first_step(name: str, expected: str) -> None:
    method = Augment(AugmentConfig(function=name))
    with pytest.raises(DataError, match=expected):
        method.begin(TrainingData())


@pytest.mark.parametrize(("function", "expected"), [
    (too_few, "returned 1, .*; it must return one text for each"),
    (one_is_none, "returned 2, .*; it must return one text for each"),
    (one_text, "returned 'a b'; it must return a list"),
    (nothing, "returned None; it must return a list"),
    (fails, "raised RuntimeError: no translator$"),
])  # fmt: skip
def test_answers_that_are_none_are_reported(function: Any, expected: str) -> None:
    with pytest.raises(
        DataError, match=rf"augment: function 'tests.methods.test_augment:{function.__name__}'.*{expected}"
    ):
        augment_texts(["a b", "c d"], function=function)


def test_a_resumed_run_keeps_a_functions_answers(toy: ToyStudy) -> None:
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog

    def ready(name: str) -> Any:
        job = toy.job(name, [{"augment": {"function": f"{__name__}:once_more", "share": 0.6, "delete": 0.2}}], **SHORT)
        job.run.path.mkdir(parents=True, exist_ok=True)
        return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run

    def tokens(run: Any) -> list[Any]:
        return [run.objective.batch(rows, run.device)["input_ids"].tolist() for rows in run._next_rows()]

    broken = ready("runs")
    while broken.progress.step < 2:
        broken.advance()
    broken.save()
    calls = len(asked)
    resumed = ready("runs")
    assert resumed.progress.step == 2
    assert tokens(resumed) == tokens(broken)
    assert len(asked) == calls, "it is not asked again"
