"""What is watched: one study, or all of a runs folder, as they are at each look."""

from __future__ import annotations

from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.ledger.folders import find_study, study_names
from fairtune.ledger.scan import RunRow
from fairtune.monitor.study_builder import StudyBuilder
from fairtune.monitor.study_view import StudyView

PATIENCE = 20.0
"""Seconds that somebody who looks once waits for the verdict so far."""


class WatchedStudy:
    """One study, looked at again and again."""

    def __init__(self, runs: Path, study: str) -> None:
        self.study = study
        self._runs = runs
        self._builder = StudyBuilder(runs, study)
        self._was_read = False

    @property
    def rows(self) -> list[RunRow]:
        """Every run of the newest plan, in its order."""
        return self._builder.live.rows(self.study)

    def look(self) -> StudyView:
        """The study as it is now; one that could be read before is taken to be written anew if it cannot be for a while.

        Raises:
            LedgerError: it is gone, or could never be read.
        """
        self._builder.tick()
        view = self._builder.view(self.study)
        if view.state != "unreadable":
            self._was_read = True
        elif not self._was_read:
            raise LedgerError(view.problem)
        else:
            require_there(self._runs, self.study)
        return view

    def settled(self, patience: float = PATIENCE) -> StudyView:
        """The study with all that can be known of it now.

        Args:
            patience: seconds to wait for the verdict so far.

        Raises:
            LedgerError: it is gone, or could never be read.
        """
        view = self.look()
        if self._builder.judge is not None and self._builder.judge.wait(patience):
            view = self.look()
        return view


class WatchedFolder:
    """All studies of a runs folder, without verdicts."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._builder = StudyBuilder(runs, judged="never")

    def look(self) -> list[StudyView]:
        """The studies as they are now.

        Raises:
            LedgerError: none is left.
        """
        self._builder.tick()
        if not self._builder.studies:
            raise LedgerError(_none(self._runs))
        return [self._builder.view(study) for study in self._builder.studies]

    settled = look  # there is no verdict to wait for


def make_watch(runs: Path, study: str | None) -> WatchedStudy | WatchedFolder:
    """What to watch.

    Args:
        study: a name, or the path of a study's folder; if absent, the only one that there is, or the only one that runs, else all.

    Raises:
        LedgerError: there is none, or the folder cannot be read.
    """
    if study is not None:
        return WatchedStudy(*find_study(study, runs))
    names = study_names(runs)
    if not names:
        raise LedgerError(_none(runs))
    if len(names) == 1:
        return WatchedStudy(runs, names[0])
    folder = WatchedFolder(runs)
    running = [view.study for view in folder.look() if view.state == "running"]
    return WatchedStudy(runs, running[0]) if len(running) == 1 else folder


def require_there(runs: Path, study: str) -> None:
    """Tell a study that is gone from one that cannot be read just now.

    Raises:
        LedgerError: it, or the whole folder, is gone.
    """
    try:
        if (runs / study / "study.json").exists():
            return
    except OSError:
        return  # it may come back, as a disk over the network does
    raise LedgerError(f"the study '{study}' is no longer in the runs folder {runs}: it was moved or deleted.")


def _none(runs: Path) -> str:
    if not runs.exists():
        return f"there is no runs folder {runs}; choose one with --runs, or start a study with `fairtune run FILE`."
    return f"no study in the runs folder {runs} yet. Start one with `fairtune run FILE`."
