"""Verdicts over tasks hold only beside matched controls, and with runs counted that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fairtune.analysis.arms_over_tasks import ArmOverTasks, difference_limits, judge_arms
from fairtune.analysis.statistics import PairedDifference
from fairtune.analysis.suite_cells import ArmCell

TASKS = ("a", "b", "c", "d")
GAINS = (0.030, 0.031, 0.029, 0.030)


def found(difference: float) -> PairedDifference:
    return PairedDifference(4, difference, difference - 0.01, difference + 0.01, 0.01, 1e-5, 1e-5, 3.0, 0.95)


def cells(*differences: float, **others: Any) -> list[ArmCell]:
    """A counted cell for each task; lists among the others have a value for each."""
    made = []
    for place, (task, difference) in enumerate(zip(TASKS, differences, strict=False)):
        own = {name: value[place] if isinstance(value, list) else value for name, value in others.items()}
        cell = ArmCell(
            task, task, "minilm", "encoder", "counted", word="not separable", against="baseline", n=4, planned=4,
            found=found(difference), gains=((difference,) * 4, (0.0,) * 4),
        )  # fmt: skip
        made.append(replace(cell, **own))
    return made


def judged(arm: list[ArmCell], metric: str = "accuracy", **others: list[ArmCell]) -> ArmOverTasks:
    return judge_arms({"arm": arm, **others}, metric, 0.95)[0]


@pytest.mark.parametrize(
    ("differences", "margin", "word", "note"),
    [
        (GAINS, None, "better", ""),
        ([-gain for gain in GAINS], None, "worse", ""),
        ([-gain for gain in GAINS], 0.01, "inferior", ""),
        ((0.05, 0.0, 0.02, 0.01), 0.05, "not inferior", ""),
        ((0.001, -0.001, 0.0, 0.001), 0.02, "equivalent", ""),
        ((0.001, -0.001, 0.0, 0.001), None, "not separable", "seeds and examples within the tasks hide it"),
        ((0.05, 0.0, 0.02, 0.01), None, "not separable", "tasks differ; some 12 tasks as scattered as these"),
        ((0.05, -0.05, 0.02, -0.019), None, "not separable", "would not show with 100 tasks"),
        (GAINS[:2], None, "no verdict", "2 of 2 tasks counted; three or more are needed"),
    ],
)
def test_every_word_over_tasks(differences: Sequence[float], margin: float | None, word: str, note: str) -> None:
    line = judged(cells(*differences, margin=margin))
    assert line.verdict.word == word, str(line.verdict)
    assert note in line.verdict.note


def test_better_on_average_is_mixed_where_a_task_is_shown_to_be_lost() -> None:
    line = judged(cells(*GAINS, word=["better", "better", "worse", "better"]))
    assert line.verdict.word == "mixed"
    assert line.verdict.note == "better on average, but shown to be worse on c, minilm"


def test_neither_on_average_is_mixed_where_tasks_are_won_and_lost() -> None:
    line = judged(cells(0.05, -0.05, 0.0, 0.01, word=["better", "worse", "not separable", "not separable"]))
    assert line.verdict.word == "mixed"
    assert "it depends on the task" in line.verdict.note
    assert line.worst is not None
    assert line.worst.task == "b"


UNEVEN = (-0.61, -0.37, -0.11, -0.08)
"""Far below on every task, by so different amounts that their mean has a wide interval."""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["inferior", "inferior", "inferior", "inferior"], "inferior"),
        (["worse", "inferior", "inferior", "worse"], "worse"),
        (["worse", "worse", "worse", "not separable"], "not separable"),
        (["worse", "worse", "worse", "not shown"], "not separable"),
    ],
)
def test_what_every_task_shows_by_itself_is_shown_however_much_tasks_differ(words: list[str], expected: str) -> None:
    line = judged(cells(*UNEVEN, word=words), other=cells(0.1))
    assert line.verdict.p is not None
    assert line.verdict.p > 0.05
    assert line.verdict.word == expected
    assert ("each of the 4 tasks by itself" in line.verdict.note) == (expected != "not separable")


def test_better_on_every_task_is_better_but_not_where_one_is_missing() -> None:
    gains = cells(*(-gain for gain in UNEVEN), word="better")
    assert judged(gains, other=cells(0.1)).verdict.word == "better"
    with_a_hole = [*gains, replace(cells(0.1)[0], task="e", state="not run", word="", found=None)]
    assert judged(with_a_hole, other=cells(0.1)).verdict.word == "not separable"
    lost = [*cells(*UNEVEN, word="worse"), *with_a_hole[-1:]]
    assert judged(lost, other=cells(0.1)).verdict.word == "worse", "the lost ones are lost, whatever is missing"


def test_a_lower_perplexity_is_better() -> None:
    assert judged(cells(*(-gain for gain in GAINS)), "perplexity").verdict.word == "better"
    assert judged(cells(*GAINS), "perplexity").verdict.word == "worse"


def test_a_verdict_that_hangs_on_settings_is_not_shown() -> None:
    line = judged(cells(*GAINS, matched=[found(0.0), found(0.001), found(-0.001), found(0.0)]))
    assert line.verdict.word == "not shown"
    assert "it may be the settings" in line.verdict.note


def test_a_matched_control_of_some_tasks_stands_for_those_alone() -> None:
    line = judged(cells(*GAINS, matched=[found(0.029), None, None, None]))
    assert line.verdict.word == "better"


def test_a_verdict_that_hangs_on_failed_runs_is_not_shown() -> None:
    line = judged(cells(*GAINS, counted=[found(-0.05), None, None, None]))
    assert line.verdict.word == "not shown"
    assert "runs that failed" in line.verdict.note


def test_arms_that_could_not_be_judged_still_count_in_the_correction() -> None:
    alone = judged(cells(*GAINS)).verdict.p
    beside = judged(cells(*GAINS), other=cells(0.1)).verdict.p
    assert alone is not None
    assert beside == pytest.approx(2 * alone)


def test_a_margin_takes_one_on_every_task() -> None:
    assert judged(cells(*GAINS, margin=[0.01, 0.01, 0.01, None])).margin is None
    assert judged(cells(*GAINS, margin=[0.01, 0.02, 0.01, 0.02])).margin == pytest.approx(0.015)


def test_a_task_that_one_model_loses_is_lost() -> None:
    both = [*cells(*GAINS, word="better"), replace(cells(-0.02)[0], model="gpt", word="worse")]
    line = judged(both)
    assert (line.better, line.worse, line.open) == (3, 1, 0)
    assert line.verdict.word == "mixed"
    assert line.found.difference == pytest.approx((0.005 + 0.031 + 0.029 + 0.030) / 4)


def test_worse_on_average_is_mixed_where_a_task_is_won() -> None:
    lost = cells(*(-gain for gain in GAINS), word=["better", "worse", "worse", "worse"])
    line = judged(lost)
    assert line.verdict.word == "mixed"
    assert line.verdict.note == "worse on average, but shown to be better on a, minilm"


def test_differences_of_shares_have_limits_and_ratios_have_none() -> None:
    assert difference_limits("accuracy") == (-1.0, 1.0)
    assert difference_limits("mcc") == (-2.0, 2.0)
    assert difference_limits("perplexity")[0] == float("-inf")
