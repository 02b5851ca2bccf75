"""Learning curves from a run's event lines."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairtune.analysis.results import LedgerRun

Points = tuple[tuple[int, float], ...]
POINTS = 25
"""Points of a smoothed loss curve, whatever the number of steps."""


@dataclass(frozen=True)
class Curve:
    """Points of one run over its optimizer steps.

    Args:
        loss: training loss, each point the mean over the steps since the point before.
        score: the study's metric on the validation split.
    """

    arm: str
    seed: int
    status: str
    loss: tuple[tuple[int, float], ...]
    score: tuple[tuple[int, float], ...]


def learning_curve(run: LedgerRun, metric: str, planned_steps: int) -> Curve:
    """Training loss smoothed over equal stretches of steps, and the validation score of each evaluation."""
    losses = [(int(e["step"]), e.get("loss")) for e in run.events_of("step")]
    stretch = max(1, math.ceil(planned_steps / POINTS))
    scores = [
        (int(e["step"]), float(e[metric]))
        for e in run.events_of("evaluation")
        if e.get("split") == "validation" and e.get(metric) is not None
    ]
    return Curve(run.arm, run.seed, run.status, _smoothed(losses, stretch), tuple(scores))


def _smoothed(points: list[tuple[int, float | None]], stretch: int) -> tuple[tuple[int, float], ...]:
    """Means over stretches of so many steps, each placed at its stretch's last step."""
    stretches: dict[int, list[float]] = {}
    for step, value in points:
        if value is not None:
            stretches.setdefault(math.ceil(step / stretch) * stretch, []).append(float(value))
    return tuple((step, sum(values) / len(values)) for step, values in sorted(stretches.items()))
