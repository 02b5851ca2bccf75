"""Trackers of a study that runs: a thread of the process that runs it sends what is new, now and then and at the end.

Nothing that a tracker does can hurt the study: what goes wrong is told once when it happens and once at the end, and is tried again
in between, ever more seldom.
"""

from __future__ import annotations

import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.core.printable import printable
from fairtune.ledger.folders import study_names
from fairtune.monitor.trackers.base import make_tracker, missing_packages, without_password
from fairtune.monitor.trackers.sync import StudySource, TrackerSync
from fairtune.settings.track import Track

EVERY = 15.0
"""Seconds between two syncs."""
SHARE = 0.02
"""Of the time, at most, that is spent on syncs while the study runs."""
LONGEST_WAIT = 600.0
LAST = 60.0
"""Seconds that the last sync may take, after which the study's own end is not held up any longer."""
NICE = 10
LONGEST_TEXT = 200


class BackgroundSync:
    """Keeps the trackers of a study up to date until it is closed.

    Args:
        tell: shows a line to the user.
    """

    def __init__(
        self, wanted: Track, runs: Path, study: str, tell: Callable[[str], None], every: float = EVERY
    ) -> None:
        self._wanted, self._runs, self._study, self._tell, self._every = wanted, runs, study, tell, every
        self.problems: dict[str, str] = {}
        self._missing = missing_packages(wanted.names)
        for name, problem in self._missing.items():
            self._note(name, problem)
        self._syncs: dict[str, TrackerSync] = {}
        self._next: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._source: StudySource | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fairtune-trackers", daemon=True)
        if self._names:
            self._thread.start()

    @property
    def _names(self) -> list[str]:
        return [name for name in self._wanted.names if name not in self._missing]

    def close(self) -> None:
        """Send the rest, and tell again what could not be sent."""
        self._closing.set()
        if self._names:
            self._thread.join(LAST)
            if self._thread.is_alive():
                self._tell(f"fairtune: trackers took more than {LAST:.0f} s at the end and were left alone.")
        for name, problem in self.problems.items():
            options = [*self._wanted.options(name), "--runs", str(self._runs)]
            command = without_password(shlex.join(["fairtune", "track", self._study, *options]))
            self._tell(
                f"fairtune: {name} does not have all of it ({problem}). The ledger does; send it with: {command}"
            )

    def _note(self, name: str, problem: str) -> None:
        if name not in self.problems:
            self._tell(f"fairtune: {name}: {problem}. The study goes on without it.")
        self.problems[name] = problem

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # on Linux a thread has a niceness of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        wait = min(self._every, 2.0)
        while not self._closing.wait(wait):
            began = time.thread_time()
            self._sync_all(last=False)
            wait = min(LONGEST_WAIT, max(self._every, (time.thread_time() - began) / SHARE))
        self._sync_all(last=True)
        for sync in self._syncs.values():
            with suppress(Exception):
                sync.tracker.close()

    def _sync_all(self, last: bool) -> None:
        if self._source is None and self._study not in study_names(self._runs):
            return  # its first plan is not recorded yet
        try:
            self._source = self._source or StudySource(self._runs, self._study)
            now = self._source.read()
        except LedgerError:
            return  # it is being written, or is gone, which the study itself will tell
        except Exception as error:  # told, or a study would seem to be sent that is not
            for name in self._names:
                self._note(name, problem_text(error))
            return
        for name in self._names:
            if not last and time.monotonic() < self._next.get(name, 0.0):
                continue
            try:
                if name not in self._syncs:
                    self._syncs[name] = TrackerSync(self._source, make_tracker(name, self._wanted, self._study))
                self._syncs[name].sync(now, lambda: not last and self._closing.is_set())
            except Exception as error:  # whatever a server or somebody's library comes up with
                self._note(name, problem_text(error))
                self._syncs.pop(name, None)  # begin anew: what is there, the destination knows
                self._tries[name] = self._tries.get(name, 0) + 1
                self._next[name] = time.monotonic() + min(LONGEST_WAIT, self._every * 2 ** self._tries[name])
            else:
                self.problems.pop(name, None)
                self._tries.pop(name, None)


def problem_text(error: Exception) -> str:
    """What went wrong with a tracker, in a line."""
    text = next((line for line in str(error).splitlines() if line.strip()), "").strip().rstrip(".")
    text = without_password(printable(text))
    text = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
    return text if isinstance(error, FairtuneError) else f"{type(error).__name__}: {text}"


@contextmanager
def track_study(
    wanted: Track | None, runs: Path, study: str, tell: Callable[[str], None], every: float = EVERY
) -> Iterator[None]:
    """Keep trackers up to date while a study runs, and send the rest when it ends, however it ends."""
    if wanted is None or not wanted.names:
        yield
        return
    background = BackgroundSync(wanted, runs, study, tell, every)
    try:
        yield
    finally:
        background.close()
