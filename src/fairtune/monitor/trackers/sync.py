"""Keeps trackers up to date with a study's ledger: called again and again, each time it sends what is new and nothing else.

What the destination holds decides, not what was meant to be sent: a row whose mark the destination keeps is left alone, and of any
other row the destination is asked how far its curves are. So a sync that was killed duplicates nothing, and a destination that was
deleted is filled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtune.core.numbers import plural
from fairtune.ledger.folders import RunFolder, require_study, run_folder
from fairtune.ledger.scan import RunRow
from fairtune.ledger.seals import DAMAGED, RUNNING, WAITING
from fairtune.monitor.judgement import ENDED
from fairtune.monitor.study_builder import StudyBuilder
from fairtune.monitor.study_view import StudyView
from fairtune.monitor.trackers.base import Tracker
from fairtune.monitor.trackers.curve_points import CurveReader
from fairtune.monitor.trackers.rows import (
    TrackedPoint,
    TrackedRow,
    TrackedStudy,
    digest,
    identity_of,
    tracked_arm,
    tracked_run,
    tracked_study,
)

ALL = "*"


@dataclass
class SyncCount:
    """What a sync sent."""

    arms: int = 0
    runs: int = 0
    points: int = 0

    def __str__(self) -> str:
        if not self.arms and not self.runs:
            return "nothing new"
        words = ((self.arms, "arm"), (self.runs, "run"), (self.points, "point"))
        return ", ".join(plural(count, word) for count, word in words)


@dataclass(frozen=True)
class _Snapshot:
    """A study at one moment, for all trackers."""

    view: StudyView
    rows: list[RunRow]
    planned: dict[tuple[str, int], dict[str, Any]]
    study: TrackedStudy
    arms: tuple[TrackedRow, ...]


class StudySource:
    """Reads a study for trackers, ticked once for all of them.

    Raises:
        LedgerError: there is no such study.
    """

    def __init__(self, runs: Path, study: str) -> None:
        self.home, self.runs, self.study = require_study(runs, study), runs, study
        self.builder = StudyBuilder(runs, study, judged="now")

    def read(self) -> _Snapshot:
        """The study as it is now.

        Raises:
            LedgerError: it cannot be read, or is gone.
        """
        self.builder.tick()
        plan, view = self.builder.live.plan(self.study), self.builder.view(self.study)
        rows, identity = self.builder.live.rows(self.study), identity_of(self.home, plan)
        ended = sum(row.status in ENDED for row in rows)
        return _Snapshot(
            view,
            rows,
            {(run["arm"], run["seed"]): run for run in plan["runs"]},
            tracked_study(view, plan, identity),
            tuple(tracked_arm(view, arm, plan, identity, ended) for arm in view.arms),
        )

    def with_times(self, arm: TrackedRow, rows: Sequence[RunRow]) -> TrackedRow:
        """An arm's row, with when its first run began and its last one ended."""
        own = [row for row in rows if row.arm == arm.arm and row.status not in (WAITING, DAMAGED)]
        found = [self.builder.live.progress(self.study, row.arm, row.seed) for row in own]
        began = [progress.began for progress in found if progress.began is not None]
        seen = [progress.seen for progress in found if progress.seen is not None]
        planned = (self.home / "study.json").stat().st_mtime if not seen else None
        return replace(arm, began=min(began, default=planned), ended=max(seen, default=planned))


class TrackerSync:
    """Keeps one tracker up to date."""

    def __init__(self, source: StudySource, tracker: Tracker) -> None:
        self.tracker, self._source = tracker, source
        self._marks: dict[str, str] = {}
        self._stamps: dict[str, str] = {}
        self._readers: dict[str, CurveReader] = {}
        self._sent: dict[str, Mapping[str, int]] = {}
        self._study: str | None = None

    def sync(self, now: _Snapshot, stopped: Callable[[], bool] = lambda: False) -> SyncCount:
        """Send what is new.

        Args:
            stopped: asked before each row; what is left then comes next time.
        """
        count = SyncCount()
        if self._study is None:
            self.tracker.begin(now.study)
            self._marks = dict(self.tracker.marks())
        if self._study != now.study.mark:
            self.tracker.send_study(now.study)
            self._study = now.study.mark
        for arm in now.arms:
            if not stopped() and self._send_arm(arm, now.rows):
                count.arms += 1
        for row in now.rows:
            if row.status == WAITING or (row.status == RUNNING and not self.tracker.live) or stopped():
                continue
            sent = self._send_run(now, row)
            if sent is not None:
                count.runs += 1
                count.points += sent
        self.tracker.flush()
        return count

    def _send_arm(self, arm: TrackedRow, rows: Sequence[RunRow]) -> bool:
        known = self._marks.get(arm.name)
        if known == arm.mark:
            return False
        arm = self._source.with_times(arm, rows)
        points = [TrackedPoint(arm.step, arm.ended or 0.0, arm.figures)]
        if known is None:  # perhaps a sync was killed after it was sent
            points = list(_newer(points, self.tracker.sent(arm)))
        self.tracker.send(arm, points, arm.mark)
        self._marks[arm.name] = arm.mark
        return True

    def _send_run(self, now: _Snapshot, row: RunRow) -> int | None:
        """Points that were sent of a run; None where nothing is new."""
        name, folder = f"{row.arm}/seed-{row.seed}", run_folder(self._source.runs, row.study, row.arm, row.seed)
        size = folder.events.stat().st_size if folder.events.is_file() else 0
        stamp = digest([row.key, row.status, row.score, row.seconds, row.reason, size])
        if self._stamps.get(name) == stamp or self._marks.get(name) == stamp:
            return None
        planned = now.planned.get((row.arm, row.seed), {})
        found = tracked_run(row.study, now.study.identity, row, planned, folder)
        if name not in self._readers:
            self._readers[name] = CurveReader(folder.events, int(planned.get("steps") or 0))
            self._sent[name] = self.tracker.sent(found)
        reader = self._readers[name]
        points = [] if row.status == DAMAGED else list(_newer(reader.read(row.status != RUNNING), self._sent[name]))
        began, ended = _file_times(folder) if reader.seen is None else (reader.began, reader.seen)
        found = replace(found, step=reader.last or found.step, began=began, ended=ended)
        try:
            self.tracker.send(found, points, stamp)
        except BaseException:
            self._readers.pop(name)  # how far it came, the destination knows
            raise
        self._stamps[name] = stamp
        if (
            row.status in ENDED or not self.tracker.live
        ):  # what is over needs no memory; what is sent whole, none either
            self._readers.pop(name)
            self._sent.pop(name)
        return len(points)


def _file_times(folder: RunFolder) -> tuple[float | None, float | None]:
    """When a run without events began and ended, as its files tell."""
    began, ended = ((path.stat().st_mtime if path.is_file() else None) for path in (folder.plan, folder.result))
    return began or ended, ended or began


def _newer(points: Sequence[TrackedPoint], sent: Mapping[str, int]) -> Iterator[TrackedPoint]:
    """What the destination does not have of some points."""
    every = sent.get(ALL, -1)
    for point in points:
        values = {name: value for name, value in point.values.items() if point.step > sent.get(name, every)}
        if values:
            yield replace(point, values=values)
