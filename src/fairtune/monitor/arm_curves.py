"""Curves by arm while runs are under way: a mean and a band of the runs that have finished, and the others each for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fairtune.ledger.scan import RunProgress, RunRow
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


class KeptCurves:
    """The curves of a study. Those of an arm in which nothing moves are worked out once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[tuple[int, str], ...], ArmCurve | None, ArmCurve | None]] = {}
        self._plan: Any = None

    def view(
        self, plan: Mapping[str, Any], rows: Sequence[RunRow], progress: Callable[[RunRow], RunProgress]
    ) -> CurvesView:
        """The curves as they are now.

        Args:
            rows: runs that have begun.
        """
        from fairtune.report.sections.curves.content import loss_groups  # with all that a report takes

        if plan is not self._plan:
            self._kept, self._plan = {}, plan
        named = plan["task"].get("metric")
        metric = named if isinstance(named, str) else ""
        by_arm: dict[str, list[RunRow]] = {arm: [] for arm in plan["arms"]}
        for row in rows:
            by_arm.setdefault(row.arm, []).append(row)
        for place, (arm, own) in enumerate(by_arm.items()):
            state = tuple((row.seed, row.status) for row in own)
            if arm not in self._kept or self._kept[arm][0] != state or any(row.status == RUNNING for row in own):
                known = [(row, progress(row)) for row in own]
                losses = [_Line(row.seed, row.status, tuple(found.losses)) for row, found in known]
                scores = [_Line(row.seed, row.status, tuple(found.scores.get(metric, ()))) for row, found in known]
                self._kept[arm] = state, _curve(arm, place, losses), _curve(arm, place, scores)
        groups = loss_groups([ArmLoss.of(arm, plan) for arm in by_arm])
        drawn = [(title, tuple(self._drawn(arms, 1))) for title, arms in groups[:LOSSES]]
        return CurvesView(tuple((title, curves) for title, curves in drawn if curves), tuple(self._drawn(by_arm, 2)))

    def _drawn(self, arms: Iterable[str], which: Literal[1, 2]) -> Iterator[ArmCurve]:
        for arm in arms:
            curve = self._kept[arm][which]
            if curve is not None:
                yield curve


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
