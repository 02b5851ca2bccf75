"""Arms as points: their score beside what a step of them costs. Times are those of the timing experiment, never of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairtune.analysis.scales import scale_of
from fairtune.report.content import ArmRow, Header
from fairtune.report.evidence import FAILED_AA

SAME = 0.01
"""Costs that differ by no more than this share are not worth a figure."""


@dataclass(frozen=True)
class CostPoint:
    """One arm.

    Args:
        place: among all arms, which decides its colour.
        low, high: the interval of its score.
        cost_low, cost_high: of the cost, where several runs told it.
        front: no other arm has both a better score and a lower cost, by these figures.
        doubted: the cost is less than can be, so it is shown but leads nothing.
    """

    arm: str
    place: int
    score: float
    low: float | None
    high: float | None
    cost: float
    cost_low: float
    cost_high: float
    front: bool = False
    doubted: bool = False


@dataclass(frozen=True)
class CostPanel:
    """Scores beside one cost; `name` is `time` or `memory`."""

    name: str
    title: str
    points: tuple[CostPoint, ...]


def cost_panels(header: Header, rows: Sequence[ArmRow]) -> tuple[CostPanel, ...]:
    """A panel for each cost that is known of two arms or more, and not the same for all; no times of a failed experiment."""
    lower = scale_of(header.metric).lower_is_better
    kinds = {row.memory_kind for row in rows if row.memory_kind and not row.simple}
    trusted = not any(row.versus is not None and row.versus.untold == FAILED_AA for row in rows)
    times = _points(header, rows, _step_time, _is_implausible) if trusted else []
    panels = [
        ("time", "seconds per step, timed in turns", times),
        ("memory", "peak memory (GB)", _points(header, rows, _memory) if len(kinds) == 1 else []),
    ]
    return tuple(
        CostPanel(name, title, _with_front(points, lower)) for name, title, points in panels if _differ(points)
    )


def _differ(points: Sequence[CostPoint]) -> bool:
    costs = [point.cost for point in points]
    return len(costs) > 1 and max(costs) > (1 + SAME) * min(costs)


Cost = Callable[[ArmRow], tuple[float, float, float] | None]


def _step_time(row: ArmRow) -> tuple[float, float, float] | None:
    if row.timed is None:
        return None
    return row.timed.seconds, row.timed.seconds, row.timed.seconds


def _memory(row: ArmRow) -> tuple[float, float, float] | None:
    found = row.peak_memory
    return None if found is None or row.simple else (found.median / 1e9, found.low / 1e9, found.high / 1e9)


def _is_implausible(row: ArmRow) -> bool:
    return row.versus is not None and row.versus.timed is not None and row.versus.timed.implausible


def _points(
    header: Header, rows: Sequence[ArmRow], cost: Cost, doubted: Callable[[ArmRow], bool] = lambda _: False
) -> list[CostPoint]:
    points = []
    for place, row in enumerate(rows):
        own, found = row.summaries[header.metric], cost(row)
        if found is not None and own.n and math.isfinite(own.mean):
            points.append(CostPoint(row.arm, place, own.mean, own.low, own.high, *found, doubted=doubted(row)))
    return points


def _with_front(points: Sequence[CostPoint], lower_is_better: bool) -> tuple[CostPoint, ...]:
    sign = -1 if lower_is_better else 1

    def beaten(one: CostPoint) -> bool:
        return one.doubted or any(
            other is not one
            and not other.doubted
            and other.cost <= one.cost
            and sign * other.score >= sign * one.score
            and (other.cost, other.score) != (one.cost, one.score)
            for other in points
        )

    return tuple(replace(one, front=not beaten(one)) for one in points)
