"""A column of measured numbers is recognised as a regression target, which is named, with an example; grades are classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.test_task_files import load, write_rows

from fairtune.classifier.labelled import read_labelled
from fairtune.core.errors import DataError
from fairtune.tasks.column_choice import choose_task_columns, describe_file, require_classes


def as_plan(file: Path) -> Any:
    return load(file, label="target")


def as_init(file: Path) -> Any:
    facts = describe_file(file)
    return require_classes(facts, choose_task_columns(facts).label)


def as_train(file: Path) -> Any:
    return read_labelled(file, ["text"], "target")


USES = [as_plan, as_init, as_train]


def write(folder: Path, suffix: str, targets: list[Any]) -> Path:
    words = "a text of so many words that it is one"
    return write_rows(
        folder / f"d{suffix}", [{"text": f"{words}, number {i}", "target": t} for i, t in enumerate(targets)]
    )


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("targets", "different", "example"),
    [
        ([i / 8 for i in range(400)], "400", "0.125"),
        ([i % 50 / 10 for i in range(400)], "50", "0.1"),
        (list(range(1000, 1400)), "400", "1000"),
        ([i / 8 for i in range(3000)], "3,000", "0.125"),
    ],
)
def test_measured_numbers_are_named_as_a_regression_target(
    tmp_path: Path, use: Callable[[Path], Any], suffix: str, targets: list[Any], different: str, example: str
) -> None:
    file = write(tmp_path, suffix, targets)
    with pytest.raises(DataError) as caught:
        use(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: column 'target' looks like a regression target: ")
    assert different in message
    assert f"such as {example}" in message


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("targets", [[i % 10 / 2 for i in range(400)], [i % 80 for i in range(400)]])
def test_grades_and_numbered_classes_are_classes(
    tmp_path: Path, use: Callable[[Path], Any], targets: list[Any]
) -> None:
    use(write(tmp_path, ".csv", targets))
