"""A study that is watched: its plan, its runs as their folders and events change, and its workers' signs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.ledger.folders import is_under_way
from fairtune.ledger.index import (
    Stamp,
    is_believed,
    is_indexed,
    is_stamped,
    list_files,
    look_at_events,
    look_at_folder,
    names_in,
)
from fairtune.ledger.index_file import IndexRow, Rows
from fairtune.ledger.seals import INTERRUPTED, RACY, RUNNING, WAITING
from fairtune.ledger.studies import read_study, study_folder
from fairtune.ledger.watched_run import WatchedRun
from fairtune.ledger.worker_signs import SeenSign, SignWatch

GROWING = 30.0
"""Seconds for which a run whose lock nobody holds here counts as running after its events grew: another machine may hold it."""
EVENTS_TURN = 8
"""Looks after which the events of every run that has ended were looked at once."""
CHECK_TURN = 64
"""Looks in which all files of every run that has ended are looked at, at best."""
FOLLOWED = 256
"""Runs that have not ended whose events are followed at a time."""

Place = tuple[str, int]
"""Arm and seed."""


class LiveStudy:
    """One study of a runs folder.

    Args:
        known: rows of the index; those of this study are taken out of it.
        thorough: believe no row before every file of its run was looked at.

    Attributes:
        problem: why its plan cannot be read; empty where it can.
        unread: runs that wait to be read, since they are new or changed.
        gone: runs whose folders are there no more.
        signs: of its workers.
        steps: planned, of each run.
    """

    def __init__(
        self, runs: Path, name: str, known: Rows, *, thorough: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.home, self.problem = name, study_folder(runs, name), ""
        self.runs: dict[Place, WatchedRun] = {}
        self.unread: dict[Place, None] = {}
        self.steps: dict[Place, int | None] = {}
        self.gone: set[Place] = set()
        self.signs: list[SeenSign] = []
        self._known, self._thorough, self._clock = known, thorough, clock
        self._watch = SignWatch(self.home, clock)
        self._plan: list[tuple[Place, str]] = []
        self._plan_look: Stamp = ()
        self._folders: dict[str, tuple[Stamp, float]] = {}
        self._unsettled: dict[Place, float] = {}
        self._grown: dict[Place, float] = {}
        self._assumed: set[Place] = set()
        self._rows: list[IndexRow] | None = None
        self._followed: dict[Place, None] = {}
        self._turn = self._place = 0

    def rows(self) -> list[IndexRow]:
        """The runs of the newest plan, in its order; those that were not read yet count as waiting."""
        if self._rows is None:
            self._rows = [self._row(place, key) for place, key in self._plan]
        return self._rows

    def look(self) -> bool:
        """Notice what changed, and say whether anything did; what has to be read is put down as unread."""
        now, changed, first = self._clock(), self._look_at_plan(), not self.runs
        self._look_at_arms(now)
        if not first:  # else they were looked at just now
            changed = self._look_at_runs(now) or changed
        for place in [place for place, until in self._unsettled.items() if now >= until]:
            del self._unsettled[place]
            self.unread[place] = None
        before = [(one.sign.beat, one.fresh) for one in self.signs]
        self.signs = self._watch.read()
        changed = changed or before != [(one.sign.beat, one.fresh) for one in self.signs]
        return self._assume_running(now) or changed

    def read_some(self, until: float) -> list[Place]:
        """Read unread runs, those that were known before first, for a while and one at least; gives those that changed."""
        changed = []
        for place in sorted(self.unread, key=lambda place: self.runs[place].row is None):
            if self._read(place):
                changed.append(place)
            if self._clock() >= until:
                break
        return changed

    def check_some(self, until: float) -> None:
        """Look at every file of some runs that have ended, the next ones each time; a changed one is put down as unread."""
        places = list(self.runs)
        for _ in places[: max(8, len(places) // CHECK_TURN)]:
            self._place = (self._place + 1) % len(places)
            run = self.runs[places[self._place]]
            if run.row is not None and run.closed and not is_believed(run.row, list_files(run.path)):
                self.unread[run.arm, run.seed] = None
            if self._clock() >= until:
                return

    def follow(self, place: Place) -> None:
        """Keep up with the events of a run that has not ended."""
        self.runs[place].follow(self.steps.get(place))
        self._followed.pop(place, None)
        self._followed[place] = None
        while len(self._followed) > FOLLOWED:
            idle = next(iter(self._followed))
            del self._followed[idle]
            if idle in self.runs:
                self.runs[idle].leave()

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _look_at_plan(self) -> bool:
        found = look_at_events(str(self.home / "study.json"))
        if found == self._plan_look and found:
            return False
        self._plan_look, self._rows = found, None
        try:
            plan = read_study(self.home)
            self._plan = [((run["arm"], run["seed"]), run["key"]) for run in plan["runs"]]
            self.steps = {(run["arm"], run["seed"]): run.get("steps") or None for run in plan["runs"]}
            self.problem = ""
        except LedgerError as error:
            self.problem = str(error)
        return True

    def _look_at_arms(self, now: float) -> None:
        """New arms and seeds show in the times of the folders that they are in."""
        if self._has_moved("", now) and (names := names_in(str(self.home))) is not None:
            for arm in self._folders.keys() - {*names, ""}:
                del self._folders[arm]
                self._forget({place for place in self.runs if place[0] == arm})
            for arm in names:
                self._folders.setdefault(arm, ((), 0.0))
        for arm in [name for name in self._folders if name]:
            if self._has_moved(arm, now):
                self._list_seeds(arm)

    def _has_moved(self, name: str, now: float) -> bool:
        """Whether something may have come into a folder, or gone; what changed just now is looked at again a little later."""
        look, (before, until) = look_at_folder(f"{self.home}/{name}"), self._folders.get(name, ((), 0.0))
        if look == before:
            self._folders[name] = look, until if now < until else 0.0
            return until > 0.0
        self._folders[name] = look, now + RACY
        return True

    def _list_seeds(self, arm: str) -> None:
        names = names_in(f"{self.home}/{arm}")
        if names is None:  # a disk that is away for a moment; what was known is shown still
            return
        found = {(arm, int(name[5:])): name for name in names if name.startswith("seed-") and is_indexed(name)}
        for place, name in found.items():
            if place not in self.runs:
                self._meet(place, f"{self.home}/{arm}/{name}")
        self._forget({place for place in self.runs if place[0] == arm} - found.keys())

    def _meet(self, place: Place, path: str) -> None:
        run = self.runs[place] = WatchedRun(*place, path)
        row = self._known.pop((self.name, *place), None)
        if row is not None:
            looks = look_at_folder(path), look_at_events(run.events)
            files = list_files(run.path) if self._thorough else None
            if is_believed(row, files) if self._thorough else is_stamped(row, (*looks[0], *looks[1])):
                run.take(row, *looks)
                self._rows = None
                return
        self.unread[place] = None

    def _forget(self, places: set[Place]) -> None:
        for place in places:
            del self.runs[place]
            for known in (self.unread, self._followed):
                known.pop(place, None)
            for timed in (self._unsettled, self._grown):
                timed.pop(place, None)
            self.gone.add(place)
            self._rows = None

    def _look_at_runs(self, now: float) -> bool:
        """Put down the runs that moved, by the cheapest look that shows it; says whether events grew."""
        self._turn = (self._turn + 1) % EVENTS_TURN
        grown, unread = False, self.unread
        for number, (place, run) in enumerate(self.runs.items()):
            if place in unread:
                continue
            if look_at_folder(run.path) != run.folder_look:
                unread[place] = None
            if run.closed:
                if number % EVENTS_TURN == self._turn and look_at_events(run.events) != run.events_look:
                    unread[place] = None
                continue
            events = look_at_events(run.events)
            if events != run.events_look:
                run.events_look, self._grown[place], grown = events, now, True
            if place in self._followed:
                run.follow(self.steps.get(place))
            if run.row is not None and run.row.status == RUNNING and not is_under_way(run.run_folder):
                unread[place] = None
        return grown

    def _assume_running(self, now: float) -> bool:
        """Runs of another machine, whose locks cannot be seen here: by events that grow, or a worker's fresh sign."""
        self._grown = {place: at for place, at in self._grown.items() if now - at <= GROWING}
        named = {place for one in self.signs if one.fresh and one.sign.run and (place := _place(one.sign.run))}
        found = {place for place in {*self._grown, *named} if place in self.runs and not self.runs[place].locked}
        if found == self._assumed:
            return False
        self._assumed, self._rows = found, None
        return True

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _read(self, place: Place) -> bool:
        """Read a run's folder; says whether there is anything new."""
        del self.unread[place]
        run, now = self.runs[place], self._clock()
        before, seen = run.row, run.events_look
        moved = run.read(self.name)
        assert run.row is not None
        if moved and (before is not None or not run.row.seal):  # else its last change is long ago
            self._unsettled[place] = now + RACY
        grown = before is not None and run.events_look != seen
        if grown:
            self._grown[place] = now
        run.locked = run.locked or run.row.status == RUNNING
        if run.closed:
            self._followed.pop(place, None)
        if before != run.row:
            self._rows = None
        return grown or before != run.row

    def _row(self, place: Place, key: str) -> IndexRow:
        run = self.runs.get(place)
        row = None if run is None else run.row
        if (
            row is None or row.status == WAITING or row.key not in (None, key)
        ):  # a run of another plan is none of this one
            return IndexRow(self.name, *place, key, WAITING)
        if row.status == INTERRUPTED and place in self._assumed:
            return replace(row, status=RUNNING)
        return row


def _place(run: str) -> Place | None:
    arm, _, seed = run.rpartition("/")
    return (arm, int(seed.removeprefix("seed-"))) if is_indexed(seed) else None
