"""From rows to checked splits: labels, missing texts, splits held out by a hash, and fixed samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.core.numbers import plural
from fairtune.settings.few_labels import Examples, FewLabels
from fairtune.settings.values import MOST_CLASSES
from fairtune.tasks.problems import Problem, Problems
from fairtune.tasks.reading.labels import (
    NO_LABEL,
    is_number,
    merged_names,
    other_spellings,
    some_rows,
    without_label,
)
from fairtune.tasks.reading.rows import KIND, NUMBER, Rows, open_table, write_batches
from fairtune.tasks.task import TEXT_COLUMNS, Split
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, exact_and_normal, place_hashes, unit_hash, unit_hashes

LABELS_SHOWN = 20


def by_hash(rows: Rows, text: Sequence[str], shares: Mapping[str, float]) -> dict[str, Rows]:
    """Split rows by a hash of their text: fixed for ever, and equal texts always fall on the same side."""
    if not shares:
        return {"train": rows}
    numbers = np.concatenate([place_hashes(batch.columns) for batch in rows.arrow(text)])
    left, parts = np.ones(len(numbers), dtype=np.bool_), {"train": numbers[:0]}
    for name, share in shares.items():
        parts[name] = np.flatnonzero(left & (numbers < share))
        left &= numbers >= share
        numbers = numbers - share
    parts["train"] = np.flatnonzero(left)
    for name, keep in parts.items():
        if not len(keep):
            raise DataError(
                f"{rows.where}: too few rows ({len(rows)}) to hold out a {name} split; give it a file of its own."
            )
    return {name: rows.take(keep) for name, keep in parts.items()}


def labelled_rows(rows: Rows, column: str, given: Sequence[str] | None, skip: bool) -> tuple[Rows, str | None]:
    """The rows that have a label, and what to tell of the others.

    Args:
        given: the labels that the study lists; one that else would mean none, such as NA, is a class.
        skip: leave rows without a label out.
    """
    without = rows.missing(column, NO_LABEL - set(given or ()))
    if not without.any():
        return rows, None
    numbers, words = rows.numbers[without].tolist(), rows.take(np.flatnonzero(without)).counts(column)
    if not skip:
        raise DataError(without_label(rows.where, column, words, numbers, len(rows), "`unlabelled: skip` in the task"))
    if without.all():
        raise DataError(
            f"{rows.where}: column '{column}' has no label in any of {len(rows):,} rows; is it the right one?"
        )
    name = rows.where.name if isinstance(rows.where, Path) else rows.where
    note = (
        f"{len(numbers):,} of {len(rows):,} rows of {name} have no label and were left out (rows {some_rows(numbers)})"
    )
    return rows.take(np.flatnonzero(~without)), note


def read_labels(
    parts: Mapping[str, Rows], column: str, given: Sequence[str] | None
) -> tuple[tuple[str, ...], dict[str, int]]:
    """The label names in order of their class number, and the number of each in every spelling.

    Args:
        given: the names; else they are the labels of the training split.
    """
    problems, written = Problems(), {}
    for split, rows in parts.items():
        with problems.about(split):
            written[split] = _count_labels(rows, column)
    problems.refuse()
    names = tuple(given) if given else _sorted(merged_names(list(written["train"])))
    numbers = {name: number for number, name in enumerate(names)}
    spellings = other_spellings(set().union(*written.values()), names)
    numbers |= {other: numbers[name] for other, name in spellings.items()}
    problems.found += _label_problems(parts, column, names, given is not None, written, numbers)
    problems.refuse()
    return names, numbers


def _label_problems(
    parts: Mapping[str, Rows],
    column: str,
    names: Sequence[str],
    given: bool,
    written: Mapping[str, Counter[str]],
    numbers: Mapping[str, int],
) -> Iterator[Problem]:
    """What is wrong with labels, each with its split.

    Args:
        given: whether the study lists the names.
        written: how often each label occurs in each split.
        numbers: of the classes, in every spelling.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        yield "labels", f"{one_of(twice)} is given twice; each label is one class."
    known = f"those {'given' if given else 'of the training split'}: {one_of(names, LABELS_SHOWN)}"
    advice = "" if given else " Add training examples, merge it with another class, or remove these rows."
    for split, found in written.items():
        where = parts[split].where
        if others := {label: count for label, count in found.items() if label not in numbers}:
            listed = one_of((f"'{name}' ({plural(count, 'row')})" for name, count in others.items()), LABELS_SHOWN)
            hint = nearest(next(iter(others)), names)
            yield split, f"{where}: label {listed} in the {split} split, but not among {known}.{hint}{advice}"
    where = parts["train"].where
    examples = {is_number(name): name for name in names}
    if len(examples) > 1 and not given:
        rows = {name: parts["train"].where_equal(column, name).numbers[0] for name in examples.values()}
        types = one_of(f"'{name}' (row {row})" for name, row in rows.items())
        yield (
            "train",
            f"{where}: column '{column}' has labels of several types, numbers and texts, such as {types}. Write them alike, or "
            "list them all under `labels`.",
        )
    used = {numbers.get(label) for label in written["train"]}
    if unused := [name for name in names if numbers[name] not in used]:
        listed = one_of(unused, LABELS_SHOWN)
        yield "train", f"{where}: no training example has the label {listed}; add some, or take it out of `labels`."
    if len(names) < 2:
        yield "train", f"{where}: column '{column}' has one class only ('{names[0]}'); two or more are needed."


def _count_labels(rows: Rows, column: str) -> Counter[str]:
    rows.refuse_missing(column, "label")
    counts = rows.counts(column)
    if len(counts) > MOST_CLASSES:
        raise DataError(
            f"{rows.where}: column '{column}' has more than {MOST_CLASSES:,} different labels ({one_of(list(counts)[:3])} "
            "...); is it a text or a score? Name the column with the label under `label`."
        )
    return counts


def _sorted(labels: Sequence[str]) -> tuple[str, ...]:
    whole = all(label.lstrip("-").isdigit() for label in labels)
    return tuple(sorted(labels, key=int) if whole else sorted(labels))


def make_splits(
    parts: Mapping[str, Rows], text: Sequence[str], label: str, given: Sequence[str] | None, aside: Path
) -> tuple[tuple[str, ...], dict[str, Split]]:
    """The label names, and the checked examples of each split.

    Args:
        given: the names, where they are not those of the training split.
        aside: a folder in which the splits are written, to be mapped from there.
    """
    names, numbers = read_labels(parts, label, given)
    return names, {name: _make_split(rows, text, label, numbers, name, aside) for name, rows in parts.items()}


def _make_split(
    rows: Rows, text: Sequence[str], label: str, numbers: Mapping[str, int], name: str, aside: Path
) -> Split:
    import pyarrow as pa
    import pyarrow.compute as pc

    def examples(batch: Any) -> Any:
        texts, places = batch.columns[: len(text)], batch.column(NUMBER)
        for column, found in zip(text, texts, strict=True):
            if found.null_count:
                wrong = places[found.is_null().index(True).as_py()]
                raise DataError(f"{rows.where}: row {wrong}: column '{column}' holds nothing, not a text.")
        labels = batch.columns[len(text)]
        place = pc.index_in(labels, value_set=pa.array(list(numbers), labels.type))
        exact, normal = exact_and_normal(texts)
        fields = {
            "id": pc.binary_join_element_wise(pa.scalar(name), pc.cast(places, pa.string()), "-"),
            **dict(zip(TEXT_COLUMNS, (pc.cast(found, pa.large_string()) for found in texts), strict=False)),
            "label": pa.array(list(numbers.values()), pa.int64()).take(place),
            "exact": pa.array(exact),
            "normal": pa.array(normal),
            **({"kind": batch.column(KIND)} if kinds else {}),
        }
        return pa.record_batch(fields)

    kinds = KIND in rows.table.column_names
    columns = [*text, label, NUMBER, *([KIND] if kinds else [])]
    file = aside / f"{name}.arrow"
    write_batches(file, map(examples, rows.arrow(columns)))
    return Split(open_table(file))


def fixed_sample(split: Split, size: Examples | None, seed: int | None = None) -> Split:
    """A stratified sample that depends on nothing but the examples themselves, and on the seed where one is given.

    Args:
        size: of the whole, or of each class.
        seed: that draws so many of each class; None is the sample that all seeds share.
    """
    if isinstance(size, FewLabels):
        return class_sample(split, size.per_class, seed)
    if size is None or size >= len(split):
        return split
    return split.take(np.sort(_stratified_order(split, "sample")[:size]))


def class_sample(split: Split, per_class: int, seed: int | None = None) -> Split:
    """So many examples of each class; of the same seed, fewer are always among more.

    What is taken depends on the texts and the seed alone, not on the order of the rows, and no text is taken twice before all
    others of its class are taken once.

    Args:
        seed: that draws the sample; None is the one that all seeds share.
    """
    salt = "few" if seed is None else f"few{PAIR_SEPARATOR}{seed}"
    ranks = unit_hashes(PAIR_SEPARATOR.join([salt, *texts]) for texts in split.texts)
    members = [np.flatnonzero(split.labels == label) for label in np.unique(split.labels)]
    return split.take(np.sort(np.concatenate([_first(ranks, some, per_class) for some in members])))


def require_per_class(split: Split, labels: tuple[str, ...], per_class: int, where: str) -> None:
    """Refuse a sample for which a class has too few examples.

    Args:
        where: that asks for it.
    """
    counts = np.bincount(split.labels, minlength=len(labels))
    least = int(counts.argmin())
    if counts[least] < per_class:
        short = int((counts < per_class).sum()) - 1
        others = f", and {plural(short, 'other class has', 'other classes have')} too few" if short else ""
        raise DataError(
            f"{where}: per_class is {per_class:,}, but class '{labels[least]}' has "
            f"{plural(int(counts[least]), 'training example')}{others}; use {counts[least]:,} or less, or give a number of "
            "examples instead, which takes the classes in their shares."
        )


def _first(ranks: npt.NDArray[np.float64], members: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """The members of a class that come first, equal texts one after another only once every text was taken."""
    order = members[np.argsort(ranks[members], kind="stable")]
    new = np.concatenate([[True], np.diff(ranks[order]) > 0])
    starts = np.flatnonzero(new)
    repeats = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[np.argsort(repeats, kind="stable")][:count]


def fixed_halves(split: Split) -> tuple[Split, Split]:
    """Two halves that share no first text (the premise of a pair), each class divided as evenly as that allows; as fixed as
    a sample. The larger half is the second."""
    groups: dict[str, list[int]] = {}
    for i, texts in enumerate(split.texts):
        groups.setdefault(texts[0].strip().lower(), []).append(i)
    ranks = {first: unit_hash(PAIR_SEPARATOR.join(["halves", first])) for first in groups}
    sides = np.zeros(len(split), dtype=np.int64)
    ahead = np.zeros(int(split.labels.max()) + 1, dtype=np.int64)  # examples that the second half has more, by class
    for first in sorted(groups, key=lambda first: (-len(groups[first]), ranks[first])):
        counts = np.bincount(split.labels[groups[first]], minlength=len(ahead))
        side = 1 if _uneven(ahead + counts) <= _uneven(ahead - counts) else -1
        sides[groups[first]] = side
        ahead += side * counts
    larger = 1 if ahead.sum() >= 0 else -1
    return split.take(np.flatnonzero(sides != larger)), split.take(np.flatnonzero(sides == larger))


def _uneven(ahead: npt.NDArray[np.int64]) -> int:
    """How far two halves are from equal, in every class and in all."""
    return int((ahead**2).sum() + ahead.sum() ** 2)


def _stratified_order(split: Split, salt: str) -> npt.NDArray[np.int64]:
    """An order by hash of the texts, any head of which has the classes in their shares."""
    ranks = unit_hashes(PAIR_SEPARATOR.join([salt, *texts]) for texts in split.texts)
    order = np.argsort(ranks, kind="stable")
    place = np.empty(len(split))
    for label in np.unique(split.labels):
        members = order[split.labels[order] == label]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.lexsort((split.labels, ranks, place))
