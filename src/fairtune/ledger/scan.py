"""The runs of a ledger as they are now, for `status`, live views and trackers: one scan, made again and again.

Each look asks the disk for the sizes and times of all files, and reads again what changed. Nothing is written. Time is the
reader's own; clocks of other machines are not compared with it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import stat_of
from fairtune.ledger.events import SAMPLE, EventTail
from fairtune.ledger.folders import RunFolder, run_folders, study_names
from fairtune.ledger.seals import FAILED, FINISHED, WAITING, FileStats, KeptStates, RunState
from fairtune.ledger.studies import read_study
from fairtune.ledger.worker_signs import SeenSign, SignWatch

CLOSED = (FINISHED, FAILED)
Place = tuple[str, int]
"""Arm and seed."""
Points = tuple[tuple[int, float], ...]
"""Pairs of an optimizer step and a value."""
POINTS = 50
"""Of a curve of losses; twice as many of scores."""
LATEST = 20
"""Steps that make up the loss and the speed of now."""
WARNINGS = 5
ABOUT = ("event", "unit", "time", "split", "step", "epoch", "best", "seconds")
"""What an evaluation's line says besides its metrics."""


@dataclass(frozen=True)
class RunRow:
    """A run in one line.

    Args:
        key: of the settings that it was made with; None where its plan.json does not say.
    """

    study: str
    arm: str
    seed: int
    key: str | None
    status: str
    metric: str | None = None
    score: float | None = None
    seconds: float | None = None
    reason: str | None = None
    signature: str | None = None


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
        step = event["step"]
        for name, value in event.items():
            if name not in ABOUT and isinstance(value, int | float):
                points = [point for point in self._scores.get(name, ()) if point[0] < step]  # it may be done again
                self._scores[name] = [*points, (step, value)]
                if len(points) >= 2 * POINTS:
                    del self._scores[name][1:-1:2]

    def _take_back(self, step: int) -> None:
        """The run goes on from a checkpoint: what it did after that step was lost."""
        self.step, self.failed = step, None
        self._stretches = {last: sums for last, sums in self._stretches.items() if last <= step}
        self._latest = deque((one for one in self._latest if one[0] <= step), LATEST)
        self._scores = {name: [point for point in points if point[0] <= step] for name, points in self._scores.items()}


class LedgerScan:
    """The studies of a runs folder, or one of them. For one thread at a time.

    Args:
        study: look at this one alone.

    Attributes:
        states: of all runs, for others that read the same ledger.
        problems: by study, why it cannot be read.
    """

    def __init__(self, runs: Path, study: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs, self.states, self.problems = Path(runs), KeptStates(), dict[str, str]()
        self._only, self._clock = study, clock
        self._studies: dict[str, _Study] = {}

    @property
    def studies(self) -> list[str]:
        return sorted(self._studies)

    def tick(self) -> set[str]:
        """Look at everything once; gives the names of studies in which anything changed."""
        if not self.runs.is_dir():
            raise LedgerError(f"the runs folder {self.runs} cannot be read; choose another with --runs.")
        there = {name for name in study_names(self.runs) if self._only in (None, name)}
        changed = there ^ self._studies.keys()
        for name in self._studies.keys() - there:
            home = self._studies.pop(name).home
            self.problems[name] = f"{home} is gone: it was moved or deleted while it was watched."
        if self._only is not None and not there and self._only not in self.problems:
            self.problems[self._only] = self._unknown(self._only)
        for name in there:
            if name not in self._studies:
                self._studies[name] = _Study(self.runs, name, self._clock)
            study = self._studies[name]
            if study.look(self.states):
                changed.add(name)
            self.problems.pop(name, None)
            if study.problem:
                self.problems[name] = study.problem
        return changed

    def plan(self, study: str) -> dict[str, Any]:
        """A study's newest plan."""
        if study in self.problems or study not in self._studies:
            raise LedgerError(self.problems.get(study) or self._unknown(study))
        return self._studies[study].plan

    def rows(self, study: str) -> list[RunRow]:
        """The runs of a study's newest plan, in its order; none where there is no such study."""
        return self._studies[study].rows if study in self._studies else []

    def signs(self, study: str) -> list[SeenSign]:
        """What the workers of a study last said."""
        return self._studies[study].signs if study in self._studies else []

    def progress(self, study: str, arm: str, seed: int) -> RunProgress:
        """How far a run is; of one that has not begun, nothing."""
        return self._studies[study].progress(arm, seed) if study in self._studies else RunProgress()

    def _unknown(self, study: str) -> str:
        return f"no study '{study}' in the runs folder {self.runs}; start one with `fairtune run FILE`."


class _Study:
    """One study of a runs folder.

    Attributes:
        problem: why its plan cannot be read; empty where it can.
        rows: the runs of the newest plan, in its order.
    """

    def __init__(self, runs: Path, name: str, clock: Callable[[], float]) -> None:
        self.home, self.problem = runs / name, ""
        self.plan: dict[str, Any] = {"runs": []}
        self.rows: list[RunRow] = []
        self.signs: list[SeenSign] = []
        self._name, self._watch = name, SignWatch(self.home, clock)
        self._plan_stat: list[int] | None = None
        self._steps: dict[Place, int | None] = {}
        self._found: dict[Place, tuple[RunState, FileStats]] = {}
        self._followed: dict[Place, tuple[EventTail, RunProgress]] = {}

    def look(self, states: KeptStates) -> bool:
        """Take in what changed, and say whether anything did."""
        seen = [(folder, states.state(folder)) for folder in run_folders(self.home)]
        found = {(folder.arm, folder.seed): (state, state.files) for folder, state in seen}
        changed = self._look_at_plan() or found != self._found
        if changed:
            self._found = found
            self.rows = [self._row((run["arm"], run["seed"]), run["key"]) for run in self.plan["runs"]]
        before, self.signs = self.signs, self._watch.read()
        beats, earlier = ([(one.sign.beat, one.fresh) for one in signs] for signs in (self.signs, before))
        return changed or beats != earlier

    def progress(self, arm: str, seed: int) -> RunProgress:
        """Take in what was added to a run's events."""
        if (arm, seed) not in self._found:
            return RunProgress()
        tail, known = self._followed.get((arm, seed), (None, None))
        tail = tail or EventTail(RunFolder(self.home / arm / f"seed-{seed}").events)
        added: list[dict[str, Any]] = []
        with suppress(OSError):  # such as a disk that is away for a moment
            added = tail.read()
        if known is None or tail.restarted:
            known = RunProgress(self._steps.get((arm, seed)))
        known.add(added)
        self._followed[arm, seed] = tail, known
        return known

    def _look_at_plan(self) -> bool:
        file = self.home / "study.json"
        found = stat_of(file) if file.is_file() else None
        if found is not None and found == self._plan_stat:
            return False
        self._plan_stat, self.problem = found, ""
        try:
            self.plan = read_study(self.home)
            self._steps = {(run["arm"], run["seed"]): run.get("steps") for run in self.plan["runs"]}
        except LedgerError as error:
            self.problem = str(error)
        return True

    def _row(self, place: Place, key: str) -> RunRow:
        state, _ = self._found.get(place, (RunState(WAITING), {}))
        state = state.of(key)
        result, own = state.result, state.key if state.status != WAITING else key
        metric, splits = result.get("metric"), result.get("metrics", {})
        scores = splits.get("test") or splits.get("validation") or {}  # trials have no other
        return RunRow(
            self._name, *place, own, state.status, metric, scores.get(metric),
            result.get("seconds", {}).get("total"), state.problem or result.get("reason"), result.get("signature"),
        )  # fmt: skip
