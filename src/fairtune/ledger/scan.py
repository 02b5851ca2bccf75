"""The runs of a ledger as they are now, for `status`, live views and trackers: one scan, made again and again.

The first look reads every run folder, in slices, so that there is something to show at once. After that a look asks the disk one
question for each run that has ended (the time of its folder, in which fairtune renames whatever it writes), a few for each that
has not, and for all files of one run in `TURNS`, since a change in place shows in none of the others. What moved is read again.
Nothing is written. Time is the reader's own; clocks of other machines are not compared with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import as_number
from fairtune.ledger.events import EventTail
from fairtune.ledger.folders import RunFolder, is_under_way
from fairtune.ledger.progress import RunProgress
from fairtune.ledger.seals import FAILED, FINISHED, RUNNING, WAITING, RunState, files_of_run, run_state
from fairtune.ledger.studies import read_study, run_folders, study_folder, study_names
from fairtune.ledger.worker_signs import SeenSign, SignWatch

SLICE = 0.25
"""Seconds of a look that may go into reading runs, and events of runs that have ended."""
TURNS = 16
"""Looks in which all files of every run are looked at once."""
CLOSED = (FINISHED, FAILED)
"""States that files alone decide; whether a run is running is a matter of its lock."""

Place = tuple[str, int]
"""Arm and seed."""
Look = tuple[int, ...]
"""Times and place of a file or a folder, and a file's size; empty where it is not there."""


@dataclass(frozen=True)
class RunRow:
    """A run in one line, whatever its result holds.

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

    @classmethod
    def of(cls, study: str, folder: RunFolder, state: RunState) -> RunRow:
        result, (metric, reason, signature) = state.result, map(state.result.get, ("metric", "reason", "signature"))
        metric = metric if isinstance(metric, str) else None
        splits = _mapping(result.get("metrics"))
        scores = _mapping(splits.get("test" if "test" in splits else "validation"))  # trials have no other
        return cls(
            study, folder.arm, folder.seed, state.key, state.status, metric,
            score=as_number(scores.get(metric)),
            seconds=as_number(_mapping(result.get("seconds")).get("total")),
            reason=state.problem or (None if reason is None else str(reason)),
            signature=None if signature is None else str(signature),
        )  # fmt: skip


class LedgerScan:
    """The studies of a runs folder, or one of them. For one thread at a time.

    Args:
        study: look at this one alone.

    Attributes:
        problems: by study, why it cannot be read.
        first: the study that is read before others, since someone looks at it.
    """

    def __init__(self, runs: Path, study: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs, self.problems = Path(runs), dict[str, str]()
        self.first: str | None = None
        self._only, self._clock, self._turn = study, clock, 0
        self._studies: dict[str, _Study] = {}
        self._wanted: dict[tuple[str, str, int], None] = {}

    @property
    def studies(self) -> list[str]:
        return sorted(self._studies)

    def reading_of(self, *studies: str) -> float:
        """Share of the runs of some studies that have been read, 0 to 1."""
        found = [self._studies[study] for study in studies if study in self._studies]
        unread = sum(run.row is None for study in found for run in study.unread.values())
        return 1.0 - unread / sum(len(study.runs) for study in found) if unread else 1.0

    @property
    def reading(self) -> float:
        """The same of all."""
        return self.reading_of(*self._studies)

    @property
    def is_behind(self) -> bool:
        """Whether runs or curves are still to be read that were there before: the next looks do that, a slice each."""
        return self.reading < 1 or bool(self._wanted)

    def tick(self) -> set[str]:
        """Look at everything once; gives the names of studies in which anything changed.

        Raises:
            LedgerError: the runs folder is missing, or cannot be read.
        """
        self._turn, changed = (self._turn + 1) % TURNS, self._find_studies()
        studies = sorted(self._studies.values(), key=lambda one: (one.name != self.first, one.name))
        for study in studies:
            if not study.unread or self._turn == 0:  # else reading comes first
                changed |= {study.name} if study.look(self._turn) else set()
                self._note_problem(study.name, study.problem)
        until = self._clock() + SLICE
        for study in studies:
            if study.unread and self._clock() < until and study.read(until, self._clock):
                changed.add(study.name)
        while self._wanted and self._clock() < until:
            place = next(iter(self._wanted))
            del self._wanted[place]
            self.progress(*place)
            changed.add(place[0])
        return changed

    def read_all(self) -> LedgerScan:
        """Look until every run has been read."""
        self.tick()
        while self.reading < 1:
            self.tick()
        return self

    def rows(self, study: str) -> list[RunRow]:
        """The runs of a study's newest plan, in its order; none where there is no such study."""
        return self._studies[study].rows() if study in self._studies else []

    def signs(self, study: str) -> list[SeenSign]:
        """What the workers of a study last said."""
        return self._studies[study].signs if study in self._studies else []

    def progress(self, study: str, arm: str, seed: int) -> RunProgress:
        """How far a run is; of one that has not begun, nothing."""
        home = self._studies.get(study)
        run = home.runs.get((arm, seed)) if home is not None else None
        return RunProgress() if home is None or run is None else run.follow(home.steps.get((arm, seed)))

    def is_ready(self, study: str, arm: str, seed: int) -> bool:
        """Whether `progress` need not read a run's events from their start; if so, the next looks read them."""
        run = self._studies[study].runs.get((arm, seed)) if study in self._studies else None
        if run is None or run.progress is not None or not run.is_closed:
            return True
        self._wanted[study, arm, seed] = None
        return False

    def _find_studies(self) -> set[str]:
        try:
            os.scandir(self.runs).close()
        except OSError as error:
            raise LedgerError(
                f"the runs folder {self.runs} cannot be read ({error.strerror}); choose another with --runs."
            ) from None
        there = {name for name in study_names(self.runs) if self._only in (None, name)}
        changed = there ^ self._studies.keys()
        for name in self._studies.keys() - there:
            home = self._studies.pop(name).home
            self.problems[name] = f"{home} is gone: it was moved or deleted while it was watched."
        for name in there - self._studies.keys():
            self._studies[name] = _Study(self.runs, name, self._clock)
        if self._only is not None and not there and self._only not in self.problems:
            self.problems[self._only] = (
                f"no study '{self._only}' in the runs folder {self.runs}; start one with `fairtune run FILE`."
            )
        return changed

    def _note_problem(self, study: str, problem: str) -> None:
        self.problems.pop(study, None)
        if problem:
            self.problems[study] = problem


class _Run:
    """A run folder, as it was when it was last read.

    Attributes:
        look, events: as the folder and its events were.
        files: a hash of all its files' sizes and times.
        row: None until it has been read.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.tail: EventTail | None = None
        self.look: Look = ()
        self.events: Look = ()
        self.files = 0
        self.row: RunRow | None = None
        self.progress: RunProgress | None = None

    @property
    def is_closed(self) -> bool:
        return self.row is not None and self.row.status in CLOSED

    def read(self, study: str) -> None:
        self.look = _look(self.folder.path)  # first, so that a change meanwhile shows next time
        state = run_state(self.folder)
        self.files, self.row = hash(repr(state.files)), RunRow.of(study, self.folder, state)

    def has_moved(self, whole: bool) -> bool:
        """Whether it has to be read again.

        Args:
            whole: look at all its files.
        """
        if _look(self.folder.path) != self.look:
            return True
        if self.row is not None and self.row.status == RUNNING:
            return not is_under_way(self.folder)
        try:
            return whole and hash(repr(files_of_run(self.folder))) != self.files
        except OSError:  # such as a disk that is away for a moment
            return True

    def has_grown(self) -> bool:
        """Whether events were added since the last look; asked of runs that have not ended."""
        before, self.events = self.events, _look(self.folder.events)
        return self.events != before

    def follow(self, steps: int | None) -> RunProgress:
        """Take in what was added to its events."""
        if self.tail is None or self.progress is None:
            self.tail, self.progress = EventTail(self.folder.events), RunProgress(steps)
        added = self.tail.read()
        if self.tail.restarted:
            self.progress = RunProgress(steps)
        self.progress.add(added)
        return self.progress


class _Study:
    """One study of a runs folder.

    Attributes:
        problem: why its plan cannot be read; empty where it can.
        unread: runs that wait to be read, since they are new or changed.
        steps: planned, of each run.
    """

    def __init__(self, runs: Path, name: str, clock: Callable[[], float]) -> None:
        self.name, self.home, self.problem = name, study_folder(runs, name), ""
        self.runs: dict[Place, _Run] = {}
        self.unread: dict[Place, _Run] = {}
        self.steps: dict[Place, int | None] = {}
        self.signs: list[SeenSign] = []
        self._watch = SignWatch(self.home, clock)
        self._plan: dict[Place, str] = {}
        self._plan_look: Look = ()
        self._rows: list[RunRow] | None = None

    def rows(self) -> list[RunRow]:
        """The runs of the newest plan, in its order; those that were not read yet count as waiting."""
        if self._rows is None:
            self._rows = [self._row(place, key) for place, key in self._plan.items()]
        return self._rows

    def look(self, turn: int) -> bool:
        """Notice what changed, and say whether anything did; what has to be read is put down as unread."""
        changed = self._look_at_plan()
        found = {(folder.arm, folder.seed): folder for folder in run_folders(self.home)}
        for place in self.runs.keys() - found.keys():
            del self.runs[place]
            self.unread.pop(place, None)
            self._rows, changed = None, True
        for number, (place, folder) in enumerate(found.items()):
            run = self.runs.get(place)
            if run is None:
                run = self.runs[place] = self.unread[place] = _Run(folder)
            elif place not in self.unread and run.has_moved(whole=number % TURNS == turn):
                self.unread[place] = run
            if not run.is_closed:
                changed |= run.has_grown()
        before = [(one.sign.beat, one.fresh) for one in self.signs]
        self.signs = self._watch.read()
        return changed or before != [(one.sign.beat, one.fresh) for one in self.signs]

    def read(self, until: float, clock: Callable[[], float]) -> bool:
        """Read unread runs for a while, those that were known before first, and one at least; whether any of them changed."""
        changed = False
        for place, run in sorted(self.unread.items(), key=lambda one: one[1].row is None):
            before = run.row
            run.read(self.name)
            del self.unread[place]
            if before != run.row:
                self._rows, changed = None, True
            if clock() >= until:
                break
        return changed

    def _look_at_plan(self) -> bool:
        found = _look(self.home / "study.json")
        if found == self._plan_look and found:
            return False
        self._plan_look = found
        try:
            plan = read_study(self.home)
        except LedgerError as error:
            self.problem = str(error)
            return True
        self._plan = {(run["arm"], run["seed"]): run["key"] for run in plan["runs"]}
        self.steps = {(run["arm"], run["seed"]): run.get("steps") or None for run in plan["runs"]}
        self.problem, self._rows = "", None
        return True

    def _row(self, place: Place, key: str) -> RunRow:
        row = self.runs[place].row if place in self.runs else None
        if (
            row is None or row.status == WAITING or row.key not in (None, key)
        ):  # a run of another plan is none of this one
            return RunRow(self.name, *place, key, WAITING)
        return row


def _look(path: Path) -> Look:
    try:
        found = os.stat(path)  # noqa: PTH116 - thousands of them in each look
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
