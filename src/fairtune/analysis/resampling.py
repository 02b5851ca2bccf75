"""The bootstrap over seeds and examples (or documents) for the difference between two arms.

Both kinds of luck count: another seed would have trained other weights, and another test set would have held other
examples. Each draw takes seeds and examples with replacement; the examples of a draw are the same for both arms and all
seeds, so that what they share cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fairtune.analysis.totals import Scored, metric_from_totals

DRAWS = 2000
CHUNK = 200


@np.errstate(over="ignore", invalid="ignore")
def bootstrap_variance(ours: Sequence[Scored], theirs: Sequence[Scored], metric: str, draws: int = DRAWS) -> float:
    """Variance of the mean difference (ours - theirs) of a metric over seeds and examples, two seeds or more.

    Two known biases of the plain two-way bootstrap are mended. With few seeds it is too sure of itself by (n-1)/n: one seed
    fewer is drawn than there are (Rao and Wu 1988). And luck that belongs to one seed on one example is counted three
    times, since drawing seeds, examples and both each show it: the two surplus shares are taken off (Owen 2007).

    Args:
        ours, theirs: what was scored, by seed; the same place is the same seed.
    """
    generator = np.random.default_rng(20261115)
    score = metric_from_totals(metric)
    seeds, units, drawn = len(ours), ours[0].units, ours[0].drawn
    parts = []
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        weights = generator.multinomial(drawn, np.full(units, 1 / units), size=size).astype(np.float64)
        parts.append([score(a.totals(weights)) - score(b.totals(weights)) for a, b in zip(ours, theirs, strict=True)])
    by_seed = np.concatenate([np.array(part) for part in parts], axis=1)
    if not np.isfinite(by_seed).all():
        return math.inf  # perplexities beyond what a number can hold
    chosen = generator.multinomial(seeds - 1, np.full(seeds, 1 / seeds), size=draws).T / (seeds - 1)
    both = float(np.var((chosen * by_seed).sum(axis=0), ddof=1))
    alone, together = float(np.var(by_seed, axis=1, ddof=1).mean()), float(np.var(by_seed.mean(axis=0), ddof=1))
    interaction = max(0.0, (alone - together) / (seeds - 1))
    # The luck of examples with just these seeds is part of the truth, so never less than that.
    return max(together, both - 2 * interaction)
