"""The runs of a ledger as they are now, for `status`, live views and trackers: one scan, made again and again.

Each look asks the disk for the sizes and times of all files, and reads again what changed. Nothing is written. Time is the
reader's own; clocks of other machines are not compared with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError
from fairtune.core.files import stat_of
from fairtune.ledger.events import EventTail
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.progress import RunProgress
from fairtune.ledger.seals import FAILED, FINISHED, WAITING, FileStats, KeptStates, RunState
from fairtune.ledger.studies import read_study, run_folders, study_names
from fairtune.ledger.worker_signs import SeenSign, SignWatch

CLOSED = (FINISHED, FAILED)
Place = tuple[str, int]
"""Arm and seed."""


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
        """Look at everything once; gives the names of studies in which anything changed.

        Raises:
            LedgerError: the runs folder is missing, or cannot be read.
        """
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
        """A study's newest plan.

        Raises:
            LedgerError: it cannot be read, or there is no such study.
        """
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
