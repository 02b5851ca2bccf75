"""All the kinds of wrong titles, in their order, and how often each occurs."""

from __future__ import annotations

from collections.abc import Mapping

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.titles import cuts, lines, noise
from fairtune.tasks.titles.corruption import REGISTERED, Kind

ROOMS = tuple(module.__name__ for module in (cuts, lines, noise))
"""The order decides which draws a seed gives to which kind."""


def kinds() -> dict[str, Kind]:
    """Every kind by name, in an order that does not depend on what was imported first."""
    return dict(sorted(REGISTERED.items(), key=lambda item: ROOMS.index(item[1].corrupt.__module__)))


def weigh(changes: Mapping[str, float]) -> dict[str, float]:
    """The weight of each kind, some of them changed.

    Raises:
        DataError: an unknown kind, a negative weight, or nothing left.
    """
    known = kinds()
    for name, weight in changes.items():
        if name not in known:
            raise DataError(f"weight: no kind '{name}'; kinds: {one_of(known)}.{nearest(name, known)}")
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight: {name}={weight:g}; a weight is 0 (never) or a number above it.")
    weights = {name: float(changes.get(name, known[name].weight)) for name in known}
    if not sum(weights.values()):
        raise DataError("weight: every kind has weight 0; leave at least one above it.")
    return weights
