"""The curves of a run as points that trackers are sent: read from its events as they come, each point once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.ledger.events import SAMPLE, EventTail
from fairtune.ledger.scan import ABOUT
from fairtune.monitor.trackers.rows import TrackedPoint

MOST = 1000
"""Points of a training curve; of a longer run, each is the mean loss of so many steps."""
TRAINING = ("loss", "lr", "grad_norm")


@dataclass
class _Place:
    """What is known so far of a point: by the unit of work, the values that were written then."""

    written: list[tuple[int, int, float, dict[str, float]]] = field(default_factory=list)

    def point(self) -> TrackedPoint:
        values: dict[str, float] = {}
        losses = [own["train/loss"] for _, _, _, own in self.written if "train/loss" in own]
        for _, _, _, own in self.written:
            values |= own
        if losses:
            values["train/loss"] = sum(losses) / len(losses)
        return TrackedPoint(self.written[-1][1], self.written[-1][2], values)


class CurveReader:
    """Reads a run's events from where it last ended.

    A point waits until the run is past it, so that all its values come together. What was lost with a killed process is left out
    if it was not read before that; steps that are done again are never given again.

    Args:
        steps: planned; 0 where nobody knows.

    Attributes:
        began, seen: times of the first and the last event.
        last: the last step that was seen.
    """

    def __init__(self, path: Path, steps: int) -> None:
        self._tail = EventTail(path)
        self._stretch = max(1, math.ceil(steps / MOST))
        self._open: dict[int, _Place] = {}
        self._given = -1
        self.last = 0
        self.began: float | None = None
        self.seen: float | None = None

    def read(self, ended: bool) -> list[TrackedPoint]:
        """The points that are whole, and were not given before.

        Args:
            ended: nothing more is to come for now.
        """
        events = self._tail.read()
        if self._tail.restarted:
            self._open.clear()
        for event in events:
            self._note(event)
        ready = sorted(place for place in self._open if ended or place < self.last)
        points = [found for place in ready if (found := self._open.pop(place).point()).step > self._given]
        self._given = max([self._given, *(point.step for point in points)])
        return points

    def _note(self, event: Mapping[str, Any]) -> None:
        kind, unit, time = event["event"], event["unit"], event["time"]
        if kind == SAMPLE:
            return
        self.began, self.seen = time if self.began is None else self.began, time
        if kind == "resumed":
            self._take_back(unit)
        elif kind == "step":
            values = {f"train/{name}": event.get(name) for name in TRAINING}
            self._add(math.ceil(event["step"] / self._stretch) * self._stretch, unit, event["step"], time, values)
        elif kind == "evaluation" and event.get("split") == "validation":
            values = {f"validation/{name}": value for name, value in event.items() if name not in ABOUT}
            self._add(event["step"], unit, event["step"], time, values)

    def _add(self, place: int, unit: int, step: int, time: float, values: Mapping[str, Any]) -> None:
        own = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
        self.last = max(self.last, step)
        if own:
            self._open.setdefault(place, _Place()).written.append((unit, step, time, own))

    def _take_back(self, unit: int) -> None:
        for place, found in list(self._open.items()):
            found.written = [one for one in found.written if one[0] < unit]
            if not found.written:
                del self._open[place]
        left = [one[1] for found in self._open.values() for one in found.written]
        self.last = max([self._given, 0, *left])
