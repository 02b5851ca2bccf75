"""From rows to checked splits: labels, missing texts, splits held out by a hash, and fixed samples."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.errors import DataError, nearest, one_of
from fairtune.tasks.sources import Rows
from fairtune.tasks.task import Split


@dataclass(frozen=True)
class Column:
    """Which columns are the text and the label, and the class number of each label value."""

    text: tuple[str, ...]
    label: str
    numbers: Mapping[str, int]
    names: tuple[str, ...]


def by_hash(rows: Rows, text: Sequence[str], shares: Mapping[str, float]) -> dict[str, Rows]:
    """Split rows by a hash of their text: fixed for ever, and equal texts always fall on the same side."""
    parts: dict[str, list[int]] = {"train": [], **{name: [] for name in shares}}
    for i in range(len(rows)):
        place = _unit_hash("\2".join(str(rows.columns[c][i]).strip().lower() for c in text))
        for name, share in shares.items():
            if place < share:
                parts[name].append(i)
                break
            place -= share
        else:
            parts["train"].append(i)
    for name, keep in parts.items():
        if not keep:
            raise DataError(
                f"{rows.file}: too few rows ({len(rows)}) to hold out a {name} split; give it a file of its own."
            )
    return {name: rows.take(keep) for name, keep in parts.items()}


def _unit_hash(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64


def _label_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or not str(value).strip()


def _refuse_missing(rows: Rows, column: str, what: str) -> None:
    missing = [rows.numbers[i] for i, value in enumerate(rows.columns[column]) if _is_missing(value)]
    if missing:
        shown = one_of(missing[:5]) + (" ..." if len(missing) > 5 else "")
        raise DataError(
            f"{rows.file}: column '{column}' has no {what} in {len(missing)} of {len(rows)} rows (rows {shown}); "
            "fill or remove them."
        )


def read_labels(parts: Mapping[str, Rows], column: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """The label names in order of their class number; each must occur in the training split."""
    found = {}
    for split, rows in parts.items():
        _refuse_missing(rows, column, "label")
        found[split] = Counter(_label_text(value) for value in rows.columns[column])
    names = tuple(given) if given else _sorted(found["train"])
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"task: labels: {one_of(twice)} is given twice; each label is one class.")
    for split, counts in found.items():
        for label, count in counts.items():
            if label not in names:
                raise DataError(
                    f"{parts[split].file}: label '{label}' occurs {count} times in the {split} split but not among "
                    f"the labels {'given' if given else 'of the training split'}: {one_of(names)}.{nearest(label, names)}"
                )
            if label not in found["train"]:
                raise DataError(
                    f"{parts[split].file}: label '{label}' is seen only in the {split} split ({count} times); a model "
                    "cannot learn it. Add training examples or remove these rows."
                )
    unused = [name for name in names if name not in found["train"]]
    if unused:
        raise DataError(f"{parts['train'].file}: no training example has the label {one_of(unused)}.")
    if len(names) < 2:
        raise DataError(
            f"{parts['train'].file}: column '{column}' has one class only ('{names[0]}'); two or more are needed."
        )
    return names


def _sorted(labels: Mapping[str, int]) -> tuple[str, ...]:
    whole = all(label.lstrip("-").isdigit() for label in labels)
    return tuple(sorted(labels, key=int) if whole else sorted(labels))


def make_split(rows: Rows, column: Column, name: str, blank: bool = False) -> Split:
    """Checked examples of one split.

    Args:
        blank: whether a text may be empty, as some of published data are.
    """
    for text in column.text:
        if not blank:
            _refuse_missing(rows, text, "text")
        wrong = next((i for i, value in enumerate(rows.columns[text]) if not isinstance(value, str)), None)
        if wrong is not None:
            raise DataError(
                f"{rows.file}: row {rows.numbers[wrong]}: column '{text}' holds {rows.columns[text][wrong]!r}, not a text."
            )
    labels = np.array([column.numbers[_label_text(value)] for value in rows.columns[column.label]], dtype=np.int64)
    texts = tuple(zip(*(rows.columns[text] for text in column.text), strict=True))
    return Split(tuple(f"{name}-{number}" for number in rows.numbers), texts, labels)


def fixed_sample(split: Split, size: int | None) -> Split:
    """A stratified sample that depends on nothing but the examples themselves."""
    if size is None or size >= len(split):
        return split
    return split.take(np.sort(_stratified_order(split, "sample")[:size]))


def fixed_halves(split: Split) -> tuple[Split, Split]:
    """Two halves, each class divided evenly within one example; as fixed as a sample."""
    order = _stratified_order(split, "halves")
    middle = len(order) // 2
    return split.take(np.sort(order[:middle])), split.take(np.sort(order[middle:]))


def _stratified_order(split: Split, salt: str) -> npt.NDArray[np.int64]:
    """An order by hash of the texts, any head of which has the classes in their shares."""
    ranks = np.array([_unit_hash(f"{salt}\2" + "\2".join(texts)) for texts in split.texts])
    order = np.argsort(ranks, kind="stable")
    place = np.empty(len(split))
    for label in np.unique(split.labels):
        members = order[split.labels[order] == label]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.lexsort((split.labels, ranks, place))
