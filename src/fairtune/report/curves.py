"""Learning curves from a run's event lines."""

from __future__ import annotations

import math

from fairtune.analysis.results import RunRecord
from fairtune.report.content import Curve

POINTS = 25
"""Points of a smoothed loss curve, whatever the number of steps."""


def learning_curve(run: RunRecord, metric: str, planned_steps: int) -> Curve:
    """Training loss smoothed over equal stretches of steps, and the validation score of each evaluation."""
    losses = [(int(e["step"]), e.get("loss")) for e in run.events if e.get("event") == "step"]
    stretch = max(1, math.ceil(planned_steps / POINTS))
    scores = [
        (int(e["step"]), float(e[metric]))
        for e in run.events
        if e.get("event") == "evaluation" and e.get("split") == "validation" and e.get(metric) is not None
    ]
    return Curve(run.arm, run.seed, run.status, _smoothed(losses, stretch), tuple(scores))


def _smoothed(points: list[tuple[int, float | None]], stretch: int) -> tuple[tuple[int, float], ...]:
    """Means over stretches of so many steps, each placed at its stretch's last step."""
    stretches: dict[int, list[float]] = {}
    for step, value in points:
        if value is not None:
            stretches.setdefault(math.ceil(step / stretch) * stretch, []).append(float(value))
    return tuple((step, sum(values) / len(values)) for step, values in sorted(stretches.items()))


def mean_curve(curves: list[tuple[tuple[int, float], ...]]) -> tuple[tuple[int, float], ...]:
    """The mean at every step that all the curves have; a run that stopped early ends the mean, it does not bend it."""
    if not curves:
        return ()
    by_step = [dict(curve) for curve in curves]
    shared = sorted(set.intersection(*(set(curve) for curve in by_step)))
    return tuple((step, sum(curve[step] for curve in by_step) / len(by_step)) for step in shared)
