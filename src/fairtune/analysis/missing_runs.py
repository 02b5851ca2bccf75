"""Missing runs: a comparison in which runs that failed or diverged count, instead of being dropped with their pair.

Runs rarely fail by chance: those that diverge would have scored badly. A null that loses its worst runs calls "better" in up to
14 % of studies if they are dropped, and still in up to 7 % if they count as the worst run of their arm that finished.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairtune.analysis.statistics import PairedDifference, with_counted


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

    Args:
        found: the comparison over the seeds that both arms finished.
        ours, theirs: the metric by seed, on the scale that is compared; None where the run is missing.
        values: what a missing run of ours, and of theirs, counts as.
    """
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is None or b is None]
    return with_counted(found, [(values[0] if a is None else a) - (values[1] if b is None else b) for a, b in pairs])
