"""The bootstrap over seeds and examples for the difference between two arms.

Both kinds of luck count: another seed would have trained other weights, and another test set would have held other
examples. Each draw takes seeds and examples with replacement; the examples of a draw are the same for both arms and all
seeds, so that what they share cancels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int64]
DRAWS = 2000
CHUNK = 200


def metric_from_counts(metric: str) -> Callable[[Floats], Floats]:
    """A metric as a function of confusion counts [..., true class, predicted class]."""
    return {"accuracy": _accuracy, "macro_f1": _macro_f1, "f1": _f1, "mcc": _mcc}[metric]


def bootstrap_variance(
    labels: Classes, ours: list[Classes], theirs: list[Classes], classes: int, metric: str, draws: int = DRAWS
) -> float:
    """Variance of the mean difference (ours - theirs) of a metric over seeds and examples, two seeds or more.

    Two known biases of the plain two-way bootstrap are mended. With few seeds it is too sure of itself by (n-1)/n: one seed
    fewer is drawn than there are (Rao and Wu 1988). And luck that belongs to one seed on one example is counted three
    times, since drawing seeds, examples and both each show it: the two surplus shares are taken off (Owen 2007).

    Args:
        ours, theirs: predicted classes by seed; the same place is the same seed.
    """
    generator = np.random.default_rng(20261115)
    score = metric_from_counts(metric)
    seeds, examples = len(ours), len(labels)
    parts = []
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        weights = generator.multinomial(examples, np.full(examples, 1 / examples), size=size).astype(np.float64)
        parts.append(
            [score(_counts(labels, a, classes, weights)) - score(_counts(labels, b, classes, weights))
             for a, b in zip(ours, theirs, strict=True)]
        )  # fmt: skip
    by_seed = np.concatenate([np.array(part) for part in parts], axis=1)
    chosen = generator.multinomial(seeds - 1, np.full(seeds, 1 / seeds), size=draws).T / (seeds - 1)
    both = float(np.var((chosen * by_seed).sum(axis=0), ddof=1))
    alone, together = float(np.var(by_seed, axis=1, ddof=1).mean()), float(np.var(by_seed.mean(axis=0), ddof=1))
    interaction = max(0.0, (alone - together) / (seeds - 1))
    # The luck of examples with just these seeds is part of the truth, so never less than that.
    return max(together, both - 2 * interaction)


def _counts(labels: Classes, predicted: Classes, classes: int, weights: Floats) -> Floats:
    """Weighted confusion counts of every draw, [draws, classes, classes]."""
    cells = labels * classes + predicted
    order = np.argsort(cells, kind="stable")
    found, starts = np.unique(cells[order], return_index=True)
    counts = np.zeros((len(weights), classes * classes))
    counts[:, found] = np.add.reduceat(weights[:, order], starts, axis=1)
    return counts.reshape(len(weights), classes, classes)


def _accuracy(counts: Floats) -> Floats:
    return np.asarray(np.trace(counts, axis1=-2, axis2=-1) / counts.sum(axis=(-2, -1)))


def _f1_by_class(counts: Floats) -> Floats:
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    total = counts.sum(axis=-1) + counts.sum(axis=-2)
    return np.asarray(np.divide(2 * hits, total, out=np.zeros_like(total), where=total > 0))


def _macro_f1(counts: Floats) -> Floats:
    return np.asarray(_f1_by_class(counts).mean(axis=-1))


def _f1(counts: Floats) -> Floats:
    return np.asarray(_f1_by_class(counts)[..., 1])


def _mcc(counts: Floats) -> Floats:
    total = counts.sum(axis=(-2, -1))
    hits = np.trace(counts, axis1=-2, axis2=-1)
    true, predicted = counts.sum(axis=-1), counts.sum(axis=-2)
    above = hits * total - (true * predicted).sum(axis=-1)
    below = np.sqrt((total**2 - (predicted**2).sum(axis=-1)) * (total**2 - (true**2).sum(axis=-1)))
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))
