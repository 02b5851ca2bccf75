"""How far a run is, from its events as they come: its step, loss, speed, scores and curves."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from fairtune.ledger.events import SAMPLE

Points = tuple[tuple[int, float], ...]
"""Pairs of an optimizer step and a value."""
POINTS = 50
"""Of a curve of losses; twice as many of scores."""
LATEST = 20
"""Steps that make up the loss and the speed of now."""
WARNINGS = 5
ABOUT = ("event", "unit", "time", "split", "step", "epoch", "best", "seconds")
"""What an evaluation's line says besides its metrics."""


class RunProgress:
    """What a run's events say so far.

    Args:
        steps: planned; a run without a plan has its first `POINTS` steps in its curve.

    Attributes:
        step, epoch: made so far; epochs are whole ones.
        began, seen: times of the first and the last event, by the clock of the machine that wrote them.
        failed: why it failed; None where it did not, or goes on since.
    """

    def __init__(self, steps: int | None = None) -> None:
        self.step = 0
        self.epoch: int | None = None
        self.began: float | None = None
        self.seen: float | None = None
        self.warnings: list[str] = []
        self.failed: str | None = None
        self._stretch = max(1, math.ceil((steps or 0) / POINTS))
        self._stretches: dict[int, tuple[float, int]] = {}  # by the last step: the total of losses, and their number
        self._latest: deque[tuple[int, float | None, float]] = deque(maxlen=LATEST)  # step, loss, seconds
        self._scores: dict[str, list[tuple[int, float]]] = {}

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take note of events, in their order."""
        for event in events:
            kind = event["event"]
            if kind == SAMPLE:  # a thread wrote it, whatever the run itself did
                continue
            self.seen = event["time"]
            self.began = self.seen if self.began is None else self.began
            self.epoch = event.get("epoch", self.epoch) if kind in ("step", "epoch") else self.epoch
            if kind == "step":
                self._add_step(event)
            elif kind == "evaluation" and event["split"] == "validation":
                self._add_scores(event)
            elif kind == "resumed":
                self._take_back(event["step"])
            elif kind == "warning":
                self.warnings = [*self.warnings, str(event["text"])][-WARNINGS:]
            elif kind == "failed":
                self.failed = str(event["reason"])

    @property
    def loss(self) -> float | None:
        """The mean of the latest steps."""
        latest = [loss for _, loss, _ in self._latest if loss is not None]
        return sum(latest) / len(latest) if latest else None

    @property
    def speed(self) -> float | None:
        """Optimizer steps per second, lately; evaluations and other pauses do not count."""
        taken = sum(seconds for _, _, seconds in self._latest)
        return len(self._latest) / taken if taken > 0 else None

    @property
    def losses(self) -> Points:
        """Means over equal stretches of steps, each at its stretch's last step."""
        return tuple((last, total / count) for last, (total, count) in self._stretches.items())

    @property
    def scores(self) -> dict[str, Points]:
        """By metric, on validation."""
        return {name: tuple(points) for name, points in self._scores.items() if points}

    def _add_step(self, event: Mapping[str, Any]) -> None:
        self.step, loss = event["step"], event.get("loss")
        self._latest.append((self.step, loss, event.get("seconds", 0.0) + event.get("data_seconds", 0.0)))
        last = math.ceil(self.step / self._stretch) * self._stretch
        if loss is not None and last <= POINTS * self._stretch:
            total, count = self._stretches.get(last, (0.0, 0))
            self._stretches[last] = total + loss, count + 1

    def _add_scores(self, event: Mapping[str, Any]) -> None:
        for name, value in event.items():
            if name not in ABOUT and isinstance(value, int | float):
                points = [
                    point for point in self._scores.get(name, ()) if point[0] < event["step"]
                ]  # it may be done again
                self._scores[name] = [*points, (event["step"], value)]
                if len(points) >= 2 * POINTS:
                    del self._scores[name][1:-1:2]

    def _take_back(self, step: int) -> None:
        """The run goes on from a checkpoint: what it did after that step was lost."""
        self.step, self.failed = step, None
        self._stretches = {last: sums for last, sums in self._stretches.items() if last <= step}
        self._latest = deque((one for one in self._latest if one[0] <= step), LATEST)
        self._scores = {name: [point for point in points if point[0] <= step] for name, points in self._scores.items()}
