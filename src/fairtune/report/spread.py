"""A figure over runs: its median and its range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Spread:
    """A median over runs with the lowest and the highest of them."""

    n: int
    median: float
    low: float
    high: float


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """The spread of what is there; None if nothing is."""
    found = [float(value) for value in values if value is not None]
    return Spread(len(found), float(median(found)), min(found), max(found)) if found else None
