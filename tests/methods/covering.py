"""Few arms of many methods that between them hold every pair that may be in one arm."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from fairtune.testing.checks import fit


def covering_arms(uses: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Arms that hold every pair of methods that fits in the order of the list.

    Args:
        uses: methods by a name of theirs, as arms list them.
    """
    order = list(uses)
    left = {pair for pair in itertools.combinations(order, 2) if fit([uses[name] for name in pair])}
    fitting, arms = frozenset(left), []
    while left:
        arm: tuple[str, ...] = min(left)
        for name in order:
            wider = tuple(sorted({*arm, name}, key=order.index))
            pairs = set(itertools.combinations(wider, 2))
            if pairs <= fitting and any(name in pair for pair in pairs & left):
                arm = wider
        arms.append(arm)
        left -= set(itertools.combinations(arm, 2))
    return arms
