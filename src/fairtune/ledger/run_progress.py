"""How far a run is, from its events as they come: its step, loss, speed, scores and curves, in little memory however long it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fairtune.core.files import as_number
from fairtune.ledger.curve_points import POINTS, Points, ThinnedPoints, flat_points, points_of, short, thin_points
from fairtune.ledger.events import SAMPLE

LATEST = 20
"""Steps that make up the loss and the speed of now."""
REMEMBERED = 512
"""Steps that can be taken back one by one, when a run goes on from a checkpoint."""
WARNINGS = 5
MOST_RECORDS = 400
MOST_METRICS = 40
SLOW = 10.0
"""Times the usual time between two steps: longer, there was an evaluation, or a clock that was put right."""
ABOUT = ("event", "unit", "time", "split", "step", "epoch", "best", "seconds")
"""What an evaluation's line says besides its metrics."""


@dataclass(slots=True)
class _Step:
    unit: int
    step: int
    loss: float | None
    time: float | None
    seconds: float


@dataclass(frozen=True)
class _Kept:
    """What was kept of a run that has ended."""

    loss: float | None
    speed: float | None
    losses: Points
    scores: dict[str, Points]


class RunProgress:
    """What a run's events say so far.

    Args:
        steps: planned; None where nobody knows, and then the grid of losses is that of the steps themselves as long as they are
            few, and doubles with them.

    Attributes:
        step, epoch: made so far; epochs are whole ones.
        loss: mean of the latest steps.
        began, seen: times of the first and the last event, by the clock of who wrote them.
        records: what methods recorded; the latest, of very many.
        failed: why it failed; None where it did not, or goes on since.
    """

    def __init__(self, steps: int | None = None) -> None:
        self.step = 0
        self.epoch: int | None = None
        self.began: float | None = None
        self.seen: float | None = None
        self.warnings: list[str] = []
        self.records: list[dict[str, Any]] = []
        self.failed: str | None = None
        self._stretch = max(1, math.ceil((steps or 0) / POINTS))
        self._sums: dict[int, list[float]] = {}  # by the last step of a stretch: sum and count
        self._recent: deque[_Step] = deque(maxlen=REMEMBERED)
        self._scores: dict[str, ThinnedPoints] = {}
        self._kept: _Kept | None = None

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take note of events, in their order."""
        for event in events:
            kind = event.get("event")
            if kind == SAMPLE:  # a thread beside the run wrote it, whatever the run itself did
                continue
            self._note_time(as_number(event.get("time")))
            unit = _whole(event.get("unit")) or 0
            if kind == "step":
                self._add_step(event, unit)
            elif kind == "evaluation" and event.get("split") == "validation":
                self._add_scores(event, unit)
            elif kind == "resumed":
                self._take_back(unit, _whole(event.get("step")) or 0)
            elif kind == "epoch":
                self.epoch = _whole(event.get("epoch"))
            elif kind == "warning":
                self.warnings = [*self.warnings, str(event.get("text"))][-WARNINGS:]
            elif (
                kind == "record"
            ):  # `records.EVENT`, whose module needs numpy, and this is read before a first page shows
                self.records.append(dict(event))
                del self.records[:-MOST_RECORDS]
            elif kind == "failed":
                self.failed = str(event.get("reason") or "")

    @property
    def loss(self) -> float | None:
        if self._kept is not None:
            return self._kept.loss
        latest = [one.loss for one in list(self._recent)[-LATEST:] if one.loss is not None]
        return sum(latest) / len(latest) if latest else None

    @property
    def speed(self) -> float | None:
        """Optimizer steps per second, lately; pauses such as evaluations do not count."""
        if self._kept is not None:
            return self._kept.speed
        latest = list(self._recent)[-LATEST - 1 :]
        times = [one.time for one in latest if one.time is not None]
        gaps = [after - before for before, after in pairwise(times) if after >= before]
        usual = sorted(gaps)[len(gaps) // 2] if gaps else 0.0
        taken = [gap for gap in gaps if gap <= SLOW * usual]
        if not sum(taken):  # the first step, or steps faster than the clock's digits
            taken = [one.seconds for one in latest]
        return len(taken) / sum(taken) if sum(taken) else None

    @property
    def losses(self) -> Points:
        """Means over equal stretches of steps, each at its stretch's last step."""
        if self._kept is not None:
            return self._kept.losses
        return tuple((step, total / count) for step, (total, count) in sorted(self._sums.items()) if count)

    @property
    def scores(self) -> dict[str, Points]:
        """By metric, on validation."""
        if self._kept is not None:
            return self._kept.scores
        return {name: points for name, thinned in self._scores.items() if (points := thinned.points)}

    def as_json(self) -> dict[str, Any]:
        """All but the records, as plain data, for a run that has ended."""
        return {
            "step": self.step, "epoch": self.epoch, "began": self.began, "seen": self.seen, "warnings": self.warnings,
            "failed": self.failed, "loss": short(self.loss), "speed": short(self.speed), "losses": flat_points(self.losses),
            "scores": {name: flat_points(thin_points(found)) for name, found in self.scores.items()},
        }  # fmt: skip

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RunProgress:
        """What `as_json` kept of a run that has ended; its records are in its events alone.

        Raises:
            KeyError, TypeError, ValueError: it is not what `as_json` made.
        """
        found = cls()
        found.step, found.epoch = int(kept["step"]), kept["epoch"]
        found.began, found.seen, found.failed = kept["began"], kept["seen"], kept["failed"]
        found.warnings = [str(text) for text in kept["warnings"]]
        scores = {str(name): points_of(points) for name, points in kept["scores"].items()}
        found._kept = _Kept(as_number(kept["loss"]), as_number(kept["speed"]), points_of(kept["losses"]), scores)
        return found

    def _note_time(self, time: float | None) -> None:
        if time is not None:
            self.began = time if self.began is None else self.began
            self.seen = time

    def _add_step(self, event: Mapping[str, Any], unit: int) -> None:
        step = _whole(event.get("step"))
        if step is None:
            return
        loss, epoch = as_number(event.get("loss")), _whole(event.get("epoch"))
        seconds = (as_number(event.get("seconds")) or 0.0) + (as_number(event.get("data_seconds")) or 0.0)
        self.step, self.epoch = step, self.epoch if epoch is None else epoch
        self._recent.append(_Step(unit, step, loss, as_number(event.get("time")), seconds))
        if loss is not None:
            sums = self._sums.setdefault(self._place(step), [0.0, 0])
            sums[0] += loss
            sums[1] += 1
        if len(self._sums) > 2 * POINTS:  # nobody planned so many
            self._widen()

    def _place(self, step: int) -> int:
        return -(-step // self._stretch) * self._stretch

    def _widen(self) -> None:
        self._stretch *= 2
        before, self._sums = self._sums, {}
        for step, (total, count) in before.items():
            sums = self._sums.setdefault(self._place(step), [0.0, 0])
            sums[0] += total
            sums[1] += count

    def _add_scores(self, event: Mapping[str, Any], unit: int) -> None:
        step = _whole(event.get("step"))
        for name, value in event.items():
            number = as_number(value)
            if step is None or name in ABOUT or number is None:
                continue
            if name in self._scores or len(self._scores) < MOST_METRICS:
                self._scores.setdefault(name, ThinnedPoints()).add(unit, step, number)

    def _take_back(self, unit: int, step: int) -> None:
        """The run goes on from a checkpoint: what it did after that was lost."""
        self.failed, self.step = None, step
        self.records = [record for record in self.records if (_whole(record.get("unit")) or 0) < unit]
        for thinned in self._scores.values():
            thinned.take_back(unit)
        while self._recent and self._recent[-1].unit >= unit:
            lost = self._recent.pop()
            if lost.loss is not None and (sums := self._sums.get(self._place(lost.step))):
                sums[0] -= lost.loss
                sums[1] -= 1
        last = self._place(step)
        self._sums = {end: sums for end, sums in self._sums.items() if sums[1] > 0 and (end <= last and step > 0)}
        inside = step - (last - self._stretch)
        if last in self._sums and self._sums[last][1] > inside:  # more was lost than is remembered: the mean stays
            total, count = self._sums[last]
            self._sums[last] = [total / count * inside, inside]
        for one in self._recent:
            one.time = None  # the time between two attempts is nobody's speed


def _whole(value: Any) -> int | None:
    """What can be a count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
