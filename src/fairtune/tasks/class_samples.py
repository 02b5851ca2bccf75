"""Samples with equally many examples of each class, fixed or drawn by a seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import DataError
from fairtune.core.numbers import plural
from fairtune.tasks.task import Split
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, unit_hashes


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
