"""Curves by arm while runs are under way: a mean and a band of the runs that have finished, and the others each for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.ledger.index import IndexRow
from fairtune.ledger.run_progress import RunProgress
from fairtune.ledger.seals import FINISHED, RUNNING
from fairtune.monitor.study_view import ArmCurve, CurvesView, Points

FEWEST = 2
"""Points below which there is no line to draw."""
LOSSES = 4
"""Panels of losses of different kinds."""


@dataclass(frozen=True)
class _Line:
    """One run's line."""

    seed: int
    state: str
    points: Points


def curves_of(plan: Mapping[str, Any], runs: Sequence[tuple[IndexRow, RunProgress]]) -> CurvesView:
    """The curves of a study, from what its runs' events say so far."""
    from fairtune.report.sections.curves.content import loss_groups

    metric = plan["task"].get("metric")
    places = {arm: place for place, arm in enumerate(plan["arms"])}
    losses: dict[str, list[_Line]] = {}
    scores: dict[str, list[_Line]] = {}
    for row, progress in runs:
        losses.setdefault(row.arm, []).append(_Line(row.seed, row.status, tuple(progress.losses)))
        if isinstance(metric, str) and (found := progress.scores.get(metric)):
            scores.setdefault(row.arm, []).append(_Line(row.seed, row.status, tuple(found)))
    groups = loss_groups([ArmLoss.of(arm, plan) for arm in places])
    drawn = [(title, _curves(arms, losses, places)) for title, arms in groups[:LOSSES]]
    return CurvesView(tuple((title, curves) for title, curves in drawn if curves), _curves(places, scores, places))


@dataclass(frozen=True)
class ArmLoss:
    """An arm, by what its training loss is made of."""

    arm: str
    methods: tuple[str, ...]
    learner: str | None

    @classmethod
    def of(cls, arm: str, plan: Mapping[str, Any]) -> ArmLoss:
        own = plan["arms"].get(arm) or {}
        names = (str(name) for use in own.get("methods") or () if isinstance(use, dict) for name in use)
        learner = own.get("learner")
        return cls(arm, tuple(names), str(learner) if learner else None)


def _curves(
    arms: Sequence[str] | Mapping[str, int], lines: Mapping[str, list[_Line]], places: Mapping[str, int]
) -> tuple[ArmCurve, ...]:
    found = (_curve(arm, places.get(arm, 0), lines.get(arm, [])) for arm in arms)
    return tuple(curve for curve in found if curve is not None)


def _curve(arm: str, place: int, lines: Sequence[_Line]) -> ArmCurve | None:
    """An arm's curve; None where nothing has two points."""
    drawn = [line for line in lines if len(line.points) >= FEWEST]
    if not drawn:
        return None
    whole = [line for line in drawn if line.state == FINISHED] or [line for line in drawn if line.state == RUNNING]
    by_step = [dict(line.points) for line in whole]
    shared = sorted(set.intersection(*(set(one) for one in by_step))) if by_step else []
    values = [[one[step] for one in by_step] for step in shared]
    return ArmCurve(
        arm,
        place,
        tuple(shared),
        tuple(sum(at) / len(at) for at in values),
        tuple(min(at) for at in values),
        tuple(max(at) for at in values),
        len(whole),
        tuple((line.seed, line.points) for line in drawn if line.state != FINISHED),
    )
