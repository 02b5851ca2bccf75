"""From what `fit` is given to the splits that are trained and selected on, with what is held out for validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.classifier.errors import InputError
from fairtune.classifier.inputs import (
    Given,
    read_texts,
    require_like,
    require_some,
)
from fairtune.classifier.labels import Classes, find_classes, read_labels
from fairtune.classifier.settings import Settings
from fairtune.core.errors import one_of
from fairtune.core.seeding import derive
from fairtune.tasks.task import Labels, Split, Texts
from fairtune.tasks.text_hashes import PAIR_SEPARATOR

MOST_SHOWN = 10


@dataclass(frozen=True)
class Data:
    """What is learned.

    Args:
        splits: train, and validation where there is one.
        how: the validation split came about.
        names: of the columns that the texts were in, if any.
        notes: what a reader of its figures must know.
        label: the column that the labels were in, if it had a name.
    """

    classes: Classes
    splits: Mapping[str, Split]
    width: int
    how: str
    names: tuple[str, ...] | None
    notes: list[str]
    label: str | None = None


def read_data(texts: Any, labels: Any, validation: Any, settings: Settings) -> Data:
    """Check texts and labels, and divide them.

    Args:
        validation: as the estimator has it: a share, a pair of texts and labels, or none.

    Raises:
        InputError: something about them cannot be used.
    """
    given = read_texts(texts)
    values = read_labels(labels, len(given))
    require_some(given)
    classes = find_classes(values)
    numbers = classes.numbers(values)
    if settings.share is not None:
        splits, notes = _held_out(given, numbers, classes, settings)
        how = f"{100 * settings.share:g} % of each class, held out by the seed, equal texts on one side"
    else:
        splits, notes, how = {"train": _split(given, numbers, "train")}, [], "none; the last weights are taken"
    if isinstance(validation, tuple | list):
        splits["validation"], notes = _given(validation, given, numbers, classes)
        how = "given"
    return Data(classes, splits, given.width, how, given.names, notes, _name(labels))


def _name(labels: Any) -> str | None:
    """What pandas calls the column."""
    name = getattr(labels, "name", None)
    return name if isinstance(name, str) else None


def _given(validation: Any, given: Given, numbers: Labels, classes: Classes) -> tuple[Split, list[str]]:
    other = read_texts(validation[0], "validation texts")
    own = classes.numbers(read_labels(validation[1], len(other), "validation labels"), "validation labels")
    require_some(other, "validation texts")
    require_like(other, given.width, given.names)
    notes = _notes(classes, numbers, own)
    seen = len(set(given.texts) & set(other.texts))
    if seen:
        notes.append(
            f"{seen:,} of the validation texts are training texts too, so the validation figures flatter the model."
        )
    return _split(other, own, "validation"), notes


def _held_out(
    given: Given, numbers: Labels, classes: Classes, settings: Settings
) -> tuple[dict[str, Split], list[str]]:
    assert settings.share is not None
    train, validation = hold_out(given.texts, numbers, settings.share, derive(settings.seed, "validation"))
    whole = _split(given, numbers, "example")
    splits = {"train": whole.take(train), "validation": whole.take(validation)}
    return splits, _notes(classes, numbers[train], numbers[validation])


def _split(given: Given, numbers: Labels, name: str) -> Split:
    return Split.of([f"{name}-{row}" for row in range(len(given))], given.texts, numbers)


def _notes(classes: Classes, train: Labels, validation: Labels) -> list[str]:
    """Classes of which the validation split knows nothing."""
    counts = Counter(train.tolist())
    unseen = [classes.names[number] for number in np.setdiff1d(train, validation).tolist()]
    if not unseen:
        return []
    few = [name for name in unseen if counts[classes.names.index(name)] == 1]
    listed = one_of(unseen, MOST_SHOWN)
    why = f", {len(few)} of them since they have one example only, which trains" if few else ""
    what = f"{len(unseen)} of {len(classes.names)} classes ({listed}){why}"
    return [f"validation has no example of {what}; it cannot tell how well they are learned."]


Rows = npt.NDArray[np.int64]


def hold_out(texts: Sequence[Texts], labels: Labels, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on and rows to validate on.

    Of each class its share is held out: at least one example, never all. Texts that are equal but for case and white space at
    their ends stay together, or the model would be selected on what it has seen.

    Raises:
        InputError: no class has two different texts.
    """
    counts = np.bincount(labels)
    wanted = np.minimum(np.maximum(1, np.floor(share * counts + 0.5).astype(np.int64)), counts - 1)
    held = np.zeros_like(counts)
    chosen: list[int] = []
    groups = _equal(texts)
    for number in np.random.default_rng(seed).permutation(len(groups)):
        own = np.bincount(labels[groups[number]], minlength=len(counts))
        if np.all(held[own > 0] + own[own > 0] <= wanted[own > 0]):
            held += own
            chosen += groups[number]
    if not chosen:
        raise InputError(
            f"validation: too few examples ({len(texts)}) to hold any out: no class has two different texts. Give more, or "
            "validation=0 to train on all of them without choosing an epoch."
        )
    validation = np.sort(np.array(chosen, dtype=np.int64))
    return np.setdiff1d(np.arange(len(texts)), validation), validation


def _equal(texts: Sequence[Texts]) -> list[list[int]]:
    """Rows of equal texts."""
    groups: dict[str, list[int]] = {}
    for row, parts in enumerate(texts):
        groups.setdefault(PAIR_SEPARATOR.join(part.strip().lower() for part in parts), []).append(row)
    return list(groups.values())
