"""The runs of a ledger while they run: cheap enough to be looked at every second or two, for days, with ten thousand runs.

A look costs two questions to the disk for each run that has not ended and one for each that has: the times of its folder, in which
fairtune renames whatever it writes, and the size of its events. What moved is read, from where the last read ended. A file of a
finished run that somebody changed in place shows in none of these; so all the files of some finished runs are looked at in turns,
a few milliseconds' worth in each look. (`refresh_index`, behind `status` and `report`, looks at every file of every run.)

Rows and curves of runs that have ended come from the index, and go there. Without one the ledger is read in slices, so that
there is something to show at once. Time is the reader's own; clocks of other machines are not compared with it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Collection
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.ledger.index import Stamp
from fairtune.ledger.index_file import NAME, Curve, IndexRow, Key, read_curves, read_rows, write_rows
from fairtune.ledger.live_study import LiveStudy, Place
from fairtune.ledger.run_progress import RunProgress
from fairtune.ledger.studies import study_names
from fairtune.ledger.watched_run import WatchedRun, curve_seal, make_curve, read_curve
from fairtune.ledger.worker_signs import SeenSign

SLICE = 0.25
"""Seconds of a look that may go into reading runs that were not read yet."""
PAUSE = 1.0
"""Seconds between two looks at what was read already, while there is more to read."""
SPARE = 0.05
"""Seconds of a look that go into curves of ended runs that nobody has kept, while there are any."""
CHECK = 0.005
"""Seconds of a look in which all files of ended runs are looked at, in turns."""
WRITE, AGAIN = 5.0, 60.0
"""Seconds between two writings of the index, and after one that failed."""
PATIENCE = 0.05
"""Seconds to wait for another process that writes the index."""


class LiveRuns:
    """The studies of a runs folder, or one of them, as they are now. For one thread at a time.

    Args:
        study: watch only this one.
        thorough: believe no row of the index before every file of its run was looked at, for who looks only once.

    Attributes:
        problems: by study, why it cannot be read.
        first: the study that is read before others, since somebody looks at it.
    """

    def __init__(
        self,
        runs: Path,
        study: str | None = None,
        *,
        thorough: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs, self.problems = Path(runs), dict[str, str]()
        self.first: str | None = None
        self._only, self._thorough, self._clock = study, thorough, clock
        self._studies: dict[str, LiveStudy] = {}
        self._known: dict[Key, IndexRow] | None = None
        self._anew = False
        self._curves: dict[str, dict[Place, Curve]] = {}
        self._fitting: dict[Key, Stamp] = {}  # how events looked whose curves were found to be theirs
        self._curveless: dict[str, dict[Place, None]] = {}
        self._new_rows: dict[Key, IndexRow] = {}
        self._new_curves: dict[Key, Curve] = {}
        self._gone: set[Key] = set()
        self._write_at, self._look_at, self._turn = 0.0, 0.0, -1

    @property
    def studies(self) -> list[str]:
        return sorted(self._studies)

    @property
    def reading(self) -> float:
        """Share of the runs that have been read, 0 to 1."""
        return self._share_read(self._studies.values())

    def reading_of(self, study: str) -> float:
        """The same of one study."""
        return self._share_read([self._studies[study]] if study in self._studies else [])

    def _share_read(self, studies: Collection[LiveStudy]) -> float:
        unread = sum(study.runs[place].row is None for study in studies for place in study.unread)
        return 1.0 if not unread else 1.0 - unread / sum(len(study.runs) for study in studies)

    @property
    def is_behind(self) -> bool:
        """Whether runs or curves are still to be read that were there before: the next looks do that, a slice each."""
        return self.reading < 1 or any(self._curveless.values())

    def tick(self) -> set[str]:
        """Look at everything once; gives the names of studies in which anything changed.

        Raises:
            LedgerError: the runs folder is missing, or cannot be read.
        """
        changed = self._look_for_studies()
        if self.reading == 1.0 or self._clock() >= self._look_at:
            changed |= self._look()
        idle = not any(study.unread for study in self._studies.values())
        changed |= self._read_unread(self._clock() + SLICE)
        if idle:
            changed |= self._keep_curves()
            for study in self._studies.values():
                study.check_some(self._clock() + CHECK / len(self._studies))
        self._write()
        return changed

    def rows(self, study: str) -> list[IndexRow]:
        """The runs of a study's newest plan, in its order; none where there is no such study."""
        return self._studies[study].rows() if study in self._studies else []

    def signs(self, study: str) -> list[SeenSign]:
        """What the workers of a study last said."""
        return self._studies[study].signs if study in self._studies else []

    def is_ready(self, study: str, arm: str, seed: int) -> bool:
        """Whether `progress` need not read a run's events from their start."""
        run = self._run(study, arm, seed)
        if run is None or not run.closed:
            return run is None or run.tail is not None
        if self._fitting.get((study, arm, seed)) == run.events_look:
            return True
        curve = self._curves_of(study).get((arm, seed))
        if curve is None or curve[0] != curve_seal(curve[1], run.events_look):
            return False
        self._fitting[study, arm, seed] = run.events_look
        return True

    def progress(self, study: str, arm: str, seed: int, *, whole: bool = False) -> RunProgress:
        """How far a run is; of one that has not begun, nothing.

        Args:
            whole: with the records of a run that has ended, which its events alone have.
        """
        place, run = (arm, seed), self._run(study, arm, seed)
        if run is None:
            return RunProgress()
        if not run.closed:
            self._studies[study].follow(place)
            assert run.progress is not None
            return run.progress
        if not whole and (kept := read_curve(self._curves_of(study).get(place), run.events_look)) is not None:
            return kept
        found = run.follow(self._studies[study].steps.get(place))
        run.leave()
        self._keep(study, run, found)
        return found

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _look(self) -> set[str]:
        changed = set()
        for name, study in self._studies.items():
            if study.look():
                changed.add(name)
            if study.problem:
                self.problems[name] = study.problem
            else:
                self.problems.pop(name, None)
        self._look_at = self._clock() + PAUSE
        return changed

    def _look_for_studies(self) -> set[str]:
        try:
            os.scandir(self.runs).close()
        except OSError as error:
            raise LedgerError(
                f"the runs folder {self.runs} cannot be read ({error.strerror}); choose another with --runs."
            ) from None
        if self._known is None:
            found = read_rows(self.runs / NAME, self._only)
            self._known, self._anew = found or {}, found is None
        only = self._only
        there = set(study_names(self.runs)) if only is None else {only} if _is_there(self.runs, only) else set()
        changed = there ^ self._studies.keys()
        for name in self._studies.keys() - there:
            study = self._studies.pop(name)
            self._gone |= {(name, *place) for place in study.runs}
            self._fitting = {key: look for key, look in self._fitting.items() if key[0] != name}
            self._curves.pop(name, None)
            self._curveless.pop(name, None)
            self.problems[name] = f"{study.home} is gone: it was moved or deleted while it was watched."
        for name in sorted(there - self._studies.keys()):
            self.problems.pop(name, None)
            self._studies[name] = LiveStudy(self.runs, name, self._known, thorough=self._thorough, clock=self._clock)
        if only is not None and not there and only not in self.problems:
            self.problems[only] = (
                f"no study '{only}' in the runs folder {self.runs}; start one with `fairtune run FILE`."
            )
        return changed

    def _read_unread(self, until: float) -> set[str]:
        """Read for a while: the study that somebody looks at, then others, another first each time."""
        changed, names = set(), [name for name, study in self._studies.items() if study.unread]
        self._turn += 1
        turned = names[self._turn % len(names) :] + names[: self._turn % len(names)] if names else []
        for name in sorted(turned, key=lambda one: one != self.first):
            study = self._studies[name]
            for place in study.read_some(until):
                changed.add(name)
                self._note(study, study.runs[place])
            if self._clock() >= until:
                break
        for name, study in self._studies.items():
            for place in study.gone:
                self._gone.add((name, *place))
                self._fitting.pop((name, *place), None)
            study.gone.clear()
        return changed

    def _note(self, study: LiveStudy, run: WatchedRun) -> None:
        """A run was read: the index is told of one that has ended, and its curve is kept."""
        if not run.closed or run.row is None:
            return
        key, place = (study.name, run.arm, run.seed), (run.arm, run.seed)
        self._gone.discard(key)
        if run.row.seal:
            self._new_rows[key] = run.row
        if run.progress is not None:
            self._keep(study.name, run, run.follow(study.steps.get(place)))
            run.leave()
        elif study.name in self._curveless and not self.is_ready(*key):
            self._curveless[study.name][place] = None

    def _run(self, study: str, arm: str, seed: int) -> WatchedRun | None:
        found = self._studies.get(study)
        return None if found is None else found.runs.get((arm, seed))

    # -- curves and the index ------------------------------------------------------------------------------------------

    def _curves_of(self, study: str) -> dict[Place, Curve]:
        if study not in self._curves:
            self._curves[study] = read_curves(self.runs / NAME, study)
        return self._curves[study]

    def _keep(self, study: str, run: WatchedRun, progress: RunProgress) -> None:
        curve = make_curve(progress, run.events_look)
        self._curves_of(study)[run.arm, run.seed] = curve
        self._new_curves[study, run.arm, run.seed] = curve

    def _keep_curves(self) -> set[str]:
        """Read events of ended runs whose curves nobody has kept, in studies of which somebody asked for one."""
        until, changed = self._clock() + SPARE, set()
        for name in self._curves:
            if name not in self._curveless:
                runs = self._studies[name].runs.values()
                self._curveless[name] = {
                    (run.arm, run.seed): None
                    for run in runs
                    if run.closed and not self.is_ready(name, run.arm, run.seed)
                }
            waiting = self._curveless[name]
            while waiting and self._clock() < until:
                place = next(iter(waiting))
                del waiting[place]
                if place in self._studies[name].runs:
                    self.progress(name, *place)
                    changed.add(name)
        return changed

    def _write(self) -> None:
        """Bring the index up to date now and then; one that cannot be written is done without."""
        assert self._known is not None
        self._gone |= self._known.keys()  # rows of runs that were not found
        self._known.clear()
        now = self._clock()
        if now < self._write_at or not (self._new_rows or self._new_curves or self._gone):
            return
        self._write_at = now + AGAIN
        with contextlib.suppress(OSError, sqlite3.Error):
            rows, gone = list(self._new_rows.values()), self._gone - self._new_rows.keys()
            write_rows(self.runs / NAME, rows, gone, self._new_curves, anew=self._anew, patience=PATIENCE)
            self._anew, self._write_at = False, now + WRITE
            self._new_rows.clear()
            self._new_curves.clear()
            self._gone.clear()


def _is_there(runs: Path, study: str) -> bool:
    try:
        return (runs / study / "study.json").is_file()
    except OSError:
        return False
