"""Points of curves, and few of them however long a run is."""

from __future__ import annotations

import math
from typing import Any

Points = tuple[tuple[int, float], ...]
"""Pairs of an optimizer step and a value."""
POINTS = 50
"""Of a curve of losses; scores have at most twice as many."""


class ThinnedPoints:
    """Points of a score, every second one left out whenever there are many; the last is always there."""

    def __init__(self) -> None:
        self._points: list[tuple[int, int, float]] = []
        self._last: tuple[int, int, float] | None = None
        self._every, self._count = 1, 0

    def add(self, unit: int, step: int, value: float) -> None:
        self._last = unit, step, value
        if self._count % self._every == 0:
            self._points.append(self._last)
        self._count += 1
        if len(self._points) > 2 * POINTS:
            self._points, self._every = self._points[::2], 2 * self._every

    def take_back(self, unit: int) -> None:
        self._points = [point for point in self._points if point[0] < unit]
        if self._last is not None and self._last[0] >= unit:
            self._last = self._points[-1] if self._points else None
        self._count = len(self._points) * self._every

    @property
    def points(self) -> Points:
        found = self._points if self._last in (None, *self._points[-1:]) else [*self._points, self._last]
        return tuple((point[1], point[2]) for point in found if point is not None)


def thin_points(points: Points) -> Points:
    """At most `POINTS` of them and the last."""
    every = math.ceil(len(points) / POINTS)
    return points if every <= 1 else (*points[:-1:every], points[-1])


def flat_points(points: Points) -> list[float | None]:
    """Steps and values in one list, for JSON that is to be short."""
    return [value for step, found in points for value in (step, short(found))]


def points_of(flat: Any) -> Points:
    """What `flat_points` made a list of.

    Raises:
        TypeError, ValueError: it is none.
    """
    return tuple((int(step), float(value)) for step, value in zip(flat[::2], flat[1::2], strict=True))


def short(value: float | None) -> float | None:
    """With as many digits as a picture shows."""
    return None if value is None else float(f"{value:.6g}")
