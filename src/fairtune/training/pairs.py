"""Pairs of training examples of the same and of different classes, drawn for one epoch: memory is linear in their number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairtune.core.errors import RunFailure
from fairtune.tasks.task import Labels
from fairtune.tasks.tokens.encoded_splits import Indices


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows of the training examples.

    Args:
        same: 1 where both are of one class, else 0.
    """

    first: Indices
    second: Indices
    same: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.same)


def draw_pairs(labels: Labels, each: int, seed: int, epoch: int) -> Pairs:
    """So many pairs of the same class and so many of different classes for each example, by the seed and the epoch alone.

    The partner is any other example of the class, or any of another class, all equally likely; never the example itself. The
    only example of its class has no partner in it and gets pairs of different classes instead.

    Raises:
        RunFailure: there is no pair of one of the two kinds.
    """
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)[labels[order]]
    starts = np.searchsorted(labels[order], labels[order])
    require_both_kinds(labels)
    generator = np.random.default_rng([seed, epoch, len("pairs")])
    places = np.arange(len(labels))
    firsts, seconds, same = [], [], []
    for kind in (1.0, 0.0):
        for _ in range(each):
            inside = starts + (places - starts + 1 + generator.integers(0, np.maximum(counts - 1, 1))) % counts
            beyond = generator.integers(0, len(labels) - counts)
            outside = beyond + np.where(beyond >= starts, counts, 0)
            paired = (counts > 1) if kind else np.zeros(len(labels), dtype=np.bool_)
            firsts.append(order)
            seconds.append(order[np.where(paired, inside, outside)])
            same.append(paired.astype(np.float32))
    return Pairs(np.concatenate(firsts), np.concatenate(seconds), np.concatenate(same))


def require_both_kinds(labels: Labels) -> None:
    """Refuse examples of which no two are of one class, or all are."""
    counts = np.bincount(labels)
    if (counts > 0).sum() < 2:
        raise RunFailure(
            "setfit: all training examples are of one class, so no pair is of different classes; use more examples"
        )
    if counts.max() < 2:
        raise RunFailure(
            "setfit: each class has one training example, so no pair is of one class; use two or more per class"
        )
