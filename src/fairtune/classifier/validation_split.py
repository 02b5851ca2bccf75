"""Holding out a validation split: every class in its share, equal texts on one side, by the seed alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairtune.classifier.errors import InputError
from fairtune.tasks.task import BETWEEN, Labels, Texts

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
        groups.setdefault(BETWEEN.join(part.strip().lower() for part in parts), []).append(row)
    return list(groups.values())
