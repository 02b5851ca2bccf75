"""Missing runs: a comparison in which runs that failed or diverged count, instead of being dropped with their pair.

Runs rarely fail by chance: those that diverge would have scored badly. A null that loses its worst runs calls "better" in up to
14 % of studies if they are dropped, and still in up to 7 % if they count as the worst run of their arm that finished.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairtune.analysis.statistics import PairedDifference, _freedom, _quantile, _upper_tail


def stand_in(finished: Sequence[float], lower_is_better: bool = False) -> float:
    """What a missing run counts as: as far below the worst of its arm as the best lies above it; NaN if none finished."""
    if not finished:
        return math.nan
    worst, best = (max(finished), min(finished)) if lower_is_better else (min(finished), max(finished))
    return worst - (best - worst)


def count_missing(
    found: PairedDifference, ours: Sequence[float | None], theirs: Sequence[float | None], values: tuple[float, float]
) -> PairedDifference:
    """The comparison of finished pairs, with every planned seed counted.

    The luck of seeds is that of all differences, stand-ins included; that of examples is taken over from the finished pairs.

    Args:
        found: the comparison over the seeds that both arms finished.
        ours, theirs: the metric by seed; None where the run is missing.
        values: what a missing run of ours, and of theirs, counts as.
    """
    pairs = zip(ours, theirs, strict=True)
    by_seed = [(values[0] if a is None else a) - (values[1] if b is None else b) for a, b in pairs]
    n, difference = len(by_seed), float(np.mean(by_seed))
    if found.p is None or not math.isfinite(difference):
        return replace(found, n=n, difference=difference, low=None, high=None, p=None)
    seed_variance = float(np.var(by_seed, ddof=1)) / n
    total = seed_variance + max(0.0, found.total_variance - found.seed_variance)
    df = _freedom(n, seed_variance, total, found.most_freedom)
    half = _quantile(found.confidence, df) * math.sqrt(total)
    return replace(
        found,
        n=n,
        difference=difference,
        low=difference - half,
        high=difference + half,
        p=min(1.0, 2 * _upper_tail(abs(difference), total, df)),
        seed_variance=seed_variance,
        total_variance=total,
        df=df,
    )
