"""Reading labels: texts, whole numbers or truth values, numbered in the order of their sorted values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.classifier.errors import InputError
from fairtune.classifier.inputs import is_missing
from fairtune.core.errors import nearest, one_of, shown
from fairtune.settings.values import MOST_CLASSES
from fairtune.tasks.reading.labels import whole_number
from fairtune.tasks.task import Labels

Values = list[str] | list[int] | list[bool]
LABEL_TYPE_NAMES: dict[type, str] = {str: "texts", int: "whole numbers", bool: "truth values"}
MOST_SHOWN = 20


@dataclass(frozen=True)
class Classes:
    """What is told apart.

    Args:
        values: sorted; a class's number is its place.
    """

    values: Values

    @property
    def array(self) -> npt.NDArray[Any]:
        """As `classes_` has them."""
        return np.array(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """As transformers and the methods know them."""
        return tuple(map(str, self.values))

    @property
    def label_type(self) -> type:
        return type(self.values[0])

    def numbers(self, labels: Values, what: str = "labels") -> Labels:
        """The labels' numbers.

        Raises:
            InputError: naming one that was not there at fit.
        """
        if labels and type(labels[0]) is not self.label_type:
            raise InputError(
                f"{what}: found {LABEL_TYPE_NAMES[type(labels[0])]} such as {shown(labels[0])}, but the classifier was fitted on "
                f"{LABEL_TYPE_NAMES[self.label_type]}: {one_of(map(shown, self.values), MOST_SHOWN)}."
            )
        known = {value: number for number, value in enumerate(self.values)}
        for place, label in enumerate(labels):
            if label not in known:
                times = labels.count(label)  # type: ignore[arg-type]
                hint = nearest(str(label), self.names)
                raise InputError(
                    f"{what}: {shown(label)} (position {place}, {times} in all) was not among the labels at fit: "
                    f"{one_of(map(shown, self.values), MOST_SHOWN)}. A model cannot predict it.{hint}"
                )
        return np.array([known[label] for label in labels], dtype=np.int64)


def read_labels(given: Any, examples: int, what: str = "labels") -> Values:
    """Labels as Python's own values, all of one type.

    Args:
        examples: how many texts they belong to.

    Raises:
        InputError: naming the first one that is not a label, and its position from 0.
    """
    if given is None:
        raise InputError(
            "TextClassifier requires y to be passed, but the target y is None: give a label for each text."
        )
    if isinstance(given, str | bytes | Mapping | Set) or not isinstance(given, Iterable):
        raise InputError(f"{what}: found {shown(given)} of type {type(given).__name__}; give a list, Series or array.")
    labels = [_label(value, place, what) for place, value in enumerate(_rows(given, what))]
    if len(labels) != examples:
        raise InputError(f"{what}: found {len(labels):,} for {examples:,} texts; each text needs one label.")
    first_places: dict[type, int] = {}
    for place, label in enumerate(labels):
        first_places.setdefault(type(label), place)
    if len(first_places) > 1:
        found = one_of(
            f"{LABEL_TYPE_NAMES[label_type]} ({shown(labels[place])} at position {place})"
            for label_type, place in first_places.items()
        )
        raise InputError(f"{what}: found several types: {found}; write them alike.")
    return labels


def find_classes(labels: Values) -> Classes:
    """The classes that occur.

    Raises:
        InputError: there is one only, or too many to be classes.
    """
    values: Any = sorted(set(labels))
    if len(values) == 1:
        raise InputError(f"labels: only one class, {shown(values[0])}; a classifier needs two or more to tell apart.")
    if len(values) > MOST_CLASSES:
        raise InputError(
            f"labels: {len(values):,} different ones ({one_of(map(shown, values[:3]))} ...), more than "
            f"{MOST_CLASSES:,}; are they texts or scores rather than classes?"
        )
    classes = Classes(values)
    if classes.array.dtype == object or classes.array.tolist() != values:
        raise InputError("labels: a whole number beyond 64 bits, or a text that ends with a NUL character; rename it.")
    return classes


def _rows(given: Any, what: str) -> list[Any]:
    array = given.to_numpy() if hasattr(given, "to_numpy") else given
    if not isinstance(array, np.ndarray):
        return list(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{what}: found an array of shape {array.shape}; give one label for each text. Multi-label is not supported."
        )
    return list(array.tolist())


def _label(value: Any, place: int, what: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # what pandas makes of whole numbers in a column that once had gaps
    if is_missing(value):
        raise InputError(f"{what}: position {place} is {shown(value)}; remove examples without a label.")
    hint = " Unknown label type: continuous, unless they are converted with int()." if isinstance(value, float) else ""
    raise InputError(
        f"{what}: position {place} is {shown(value)} of type {type(value).__name__}; allowed: texts, whole numbers or truth "
        f"values.{hint}"
    )


def class_name(value: Any) -> str:
    """A label as text: 1, 1.0, "1" and " 1.0 " are the same class."""
    return whole_number(str(value).strip())
