"""Learning curves from a run's event lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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


LOSSES = 4
"""Panels of losses of different kinds; a page of them would say no more."""
BANDS = 8
"""Bands of more arms would hide each other."""
SAME_LOSS = frozenset({"orthogonal_qk", "layerwise_lr", "ema", "peft", "bitfit", "freeze", "augment"})
"""Methods under which the training loss is still the plain one: they change what is trained or how fast, not what is minimised."""


class LossOwner(Protocol):
    """An arm, by what its training loss is made of: its methods, each perhaps with settings in brackets."""

    @property
    def arm(self) -> str: ...
    @property
    def methods(self) -> Sequence[str]: ...
    @property
    def learner(self) -> str | None: ...


def loss_groups(rows: Sequence[LossOwner]) -> list[tuple[str, list[str]]]:
    """Arms whose training losses are the same quantity, and what else the others minimise; a learner of another kind is alone.

    Losses of focal or smoothed targets, or with a penalty in them, have another scale: on one axis they would seem to be better.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        others = tuple(use for use in row.methods if use.partition("(")[0] not in SAME_LOSS)
        groups.setdefault((row.learner, *others) if row.learner else others, []).append(row.arm)
    plain = groups.pop((), [])
    found = [(" of " + " + ".join(name.partition("(")[0] for name in names), arms) for names, arms in groups.items()]
    return [("", plain), *found] if plain else found


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
