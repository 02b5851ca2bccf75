"""A report that is written again whenever its ledger has changed, until somebody stops it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.analysis.results import load_results
from fairtune.core.errors import LedgerError
from fairtune.core.files import write_atomically
from fairtune.ledger.timings import FOLDER as TIMES
from fairtune.report.writer import write_report

POLL = 2.0
"""Seconds between two looks at the ledger."""
SHARE, LONGEST = 0.2, 60.0
"""Of the time, at most, that is spent on writing reports, since runs need the processor; seconds that a change waits at most."""
REFRESH = 5
"""Seconds after which an open page loads itself again."""
WATCHED = ("study.json", "history.json", "plan.json", "events.jsonl", "result.json", "manifest.json")
"""Files whose sizes and times say that there is something new."""
CHARSET = '<meta charset="utf-8">'
RELOAD = f'{CHARSET}\n<meta http-equiv="refresh" content="{REFRESH}">'

Stamp = dict[str, tuple[int, int]]


@dataclass
class StudyWatch:
    """A study that is watched.

    Args:
        tell: takes one line for every report that was written.
        sleep, clock: wait so many seconds, and tell how many have passed.
    """

    runs: Path
    study: str
    formats: tuple[str, ...]
    output: Path | None
    tell: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def keep_writing(self) -> None:
        """Write the report now and after each change, for ever.

        Raises:
            LedgerError: there is no such study, or it is there no more.
        """
        seen = stamp_of(self._home)
        took, page = self._write()
        written = self.clock()
        try:
            while True:
                self.sleep(POLL)
                self._require()
                now = stamp_of(self._home)
                if now == seen or self.clock() - written < min(LONGEST, took / SHARE):
                    continue
                seen = now
                try:
                    took, page = self._write()
                    written = self.clock()
                except LedgerError as error:  # such as a file that is just being put right; the next change may help
                    self._require()
                    self.tell(f"{_clock()}  not written: {error}")
        finally:
            if page is not None:
                _replace(page, RELOAD, CHARSET)  # nobody writes it any more, so nobody need load it again

    @property
    def _home(self) -> Path:
        return self.runs / self.study

    def _require(self) -> None:
        if not (self._home / "study.json").is_file():
            raise LedgerError(f"{self._home} is gone: it was moved or deleted while it was watched.")

    def _write(self) -> tuple[float, Path | None]:
        """Seconds that a report took, and its page."""
        began = self.clock()
        results = load_results(self.runs, self.study)
        written = write_report(results, list(self.formats), self.output)
        page = written.get("html")
        if page is not None:
            _replace(page, CHARSET, RELOAD)
        states: dict[str, int] = {}
        for run in results.runs:
            states[run.status] = states.get(run.status, 0) + 1
        told = ", ".join(f"{count} {status}" for status, count in states.items())
        self.tell(f"{_clock()}  {told}: {page or next(iter(written.values()))}")
        return self.clock() - began, page


def stamp_of(home: Path) -> Stamp:
    """Sizes and times of the files that a report is made of; nothing is opened."""
    found: Stamp = {}
    for arm in _entries(home):
        if arm.is_dir(follow_symlinks=False):
            for run in _entries(Path(arm.path)):
                if run.name.startswith("seed-"):
                    found |= _files(Path(run.path))
    return found | _files(home) | {str(path): _stat(path) for path in sorted((home / TIMES).glob("*.json"))}


def _files(folder: Path) -> Stamp:
    return {entry.path: _stat(Path(entry.path)) for entry in _entries(folder) if entry.name in WATCHED}


def _entries(folder: Path) -> list[Any]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # it came or went meanwhile
        return []


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns


def _replace(page: Path, old: str, new: str) -> None:
    try:
        text = page.read_text(encoding="utf-8")
        if old in text:
            write_atomically(page, text.replace(old, new, 1).encode("utf-8"))
    except (OSError, UnicodeError):
        return  # it may have gone with the study


def _clock() -> str:
    return time.strftime("%H:%M:%S")
