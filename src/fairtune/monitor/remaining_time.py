"""How long runs and studies will still take, from what the ledger has: rough, since arms and evaluations differ."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fairtune.ledger.scan import RunRow
from fairtune.ledger.seals import FINISHED, INTERRUPTED, RUNNING, WAITING
from fairtune.monitor.study_view import RunView

Planned = Mapping[tuple[str, int], Mapping[str, Any]]
"""The runs of a plan, by arm and seed."""


def usual_seconds(rows: Sequence[RunRow]) -> dict[str, float]:
    """What a finished run of each arm took, in the middle."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.status == FINISHED and row.seconds is not None:
            found.setdefault(row.arm, []).append(row.seconds)
    return {arm: statistics.median(seconds) for arm, seconds in found.items()}


def with_left(run: RunView, usual: Mapping[str, float]) -> RunView:
    """A run with what is left of it: as its arm's others took where some finished, else by its own speed."""
    if run.state != RUNNING or not run.steps or run.step is None:
        return run
    share = max(0.0, 1 - run.step / run.steps)
    if run.arm in usual:
        left: float | None = usual[run.arm] * share
    else:
        left = run.steps * share / run.speed if run.speed else None
    return RunView(**{**vars(run), "left": left})


def study_left(
    rows: Sequence[RunRow], built: Sequence[RunView], planned: Planned,
    usual: Mapping[str, float],
) -> float | None:  # fmt: skip
    """Until the last run ends, if as many go on side by side as now; rough, since arms and evaluations differ."""
    running = [run for run in built if run.state == RUNNING]
    if not running:
        return None
    speeds = [run.speed for run in running if run.speed]
    per_step = [usual[row.arm] / steps for row in rows if row.arm in usual and (steps := _steps(planned, row))]
    step = statistics.median(per_step) if per_step else (1 / statistics.fmean(speeds) if speeds else None)
    if step is None:
        return None
    to_come = [row for row in rows if row.status in (WAITING, INTERRUPTED)]
    work = sum(usual.get(row.arm, step * _steps(planned, row)) for row in to_come)
    work += sum(run.left if run.left is not None else step * (run.steps or 0) for run in running)
    longest = max((run.left or 0.0 for run in running), default=0.0)
    return max(longest, work / len(running))


def _steps(planned: Planned, row: RunRow) -> int:
    return int(planned.get((row.arm, row.seed), {}).get("steps") or 0)
