"""Weights of classes: what may be given, how it is read, and what is said when it does not fit the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from sklearn.utils.class_weight import compute_class_weight

from fairtune.methods.base import TrainingData
from fairtune.methods.class_weights import ClassWeights, balanced, problem, resolved
from fairtune.methods.registry import parse_method_use

READ: TypeAdapter[Any] = TypeAdapter(ClassWeights)
LABELS = ("negative", "neutral", "positive")
DATA = TrainingData(LABELS, (60, 30, 10))


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    classes = np.repeat([0, 1, 2], DATA.counts)
    expected = compute_class_weight("balanced", classes=np.unique(classes), y=classes)
    assert resolved(READ.validate_python("balanced"), DATA) == pytest.approx(expected)
    assert np.array(DATA.counts) @ balanced(DATA.counts) == pytest.approx(sum(DATA.counts)), "1 on the mean"


def test_a_list_is_in_the_order_of_the_labels_and_a_mapping_goes_by_their_names() -> None:
    assert resolved(READ.validate_python([1, 1.5, 2]), DATA) == [1.0, 1.5, 2.0]
    given = READ.validate_python({"positive": 2, "negative": 1, "neutral": 1.5})
    assert resolved(given, DATA) == [1.0, 1.5, 2.0]
    assert problem(given, LABELS) is None


@pytest.mark.parametrize("given", [{0: 1, 1: 1.3}, {"0": 1, "1": 1.3}, {np.int64(0): 1, np.int64(1): 1.3}])
def test_numbers_name_labels_that_are_numbers(given: dict[Any, float]) -> None:
    read = READ.validate_python(given)
    assert problem(read, ("0", "1")) is None
    assert resolved(read, TrainingData(("0", "1"), (5, 5))) == [1.0, 1.3]


@pytest.mark.parametrize(
    "given", ["ballanced", "", 1.3, True, [], {}, [1, -1], [1, 0], {"a": 0}, [1, "2"], [1, None], [1, float("inf")],
              {"a": float("nan")}, {"a": "1"}, None],
)  # fmt: skip
def test_what_are_no_weights_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 1.3], "weights has length 2, but the task has 3 classes; give one number for each. The labels are: negative"),
        ({"negative": 1, "neutral": 1, "positve": 2}, "names positve, which the task does not have. Did you mean 'positive'?"),
        ({"negative": 1, "neutral": 1, "positve": 2}, "nothing for positive; give each of the task's labels a weight."),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_the_labels_are_explained(given: Any, expected: str) -> None:
    assert expected in (problem(READ.validate_python(given), LABELS) or "")


@pytest.mark.parametrize(("method", "settings", "expected"), [
    ("focal", {"alpha": 0.25}, ["wrong 0.75", "correct 0.25"]),
    ("focal", {"alpha": {"correct": 3, "wrong": 1}}, ["wrong 1", "correct 3"]),
    ("focal", {"alpha": [0.25, 0.25]}, ["both classes 0.25", "constant factor"]),
    ("weighted_ce", {"weights": [1, 1.3]}, ["wrong 1", "correct 1.3"]),
    ("weighted_ce", {"weights": "balanced"}, ["every class"]),
    ("focal", {}, None),
])  # fmt: skip
def test_what_each_class_counts_is_said_by_its_name(
    method: str, settings: dict[str, Any], expected: list[str] | None
) -> None:
    phrase = parse_method_use({method: settings}).config.explained(["wrong", "correct"])
    assert phrase is None if expected is None else all(part in str(phrase) for part in expected)
