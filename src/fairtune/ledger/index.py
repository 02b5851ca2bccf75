"""The index: one SQLite row per run, so that views of many runs need not read them all. Delete it whenever you like.

A row is believed only while each file of its run has the size, times and place on the disk that it had when the row was made, and
while the row itself is what was written; else the run's folder is read again. So the answers are those of the folders, with an
index or without. Only rows that changed are written.

Who watches a ledger for hours looks at less each time (`LiveRuns`): at a row's `stamp`, which shows whatever fairtune does to a
run, and only in turns at all the files of some runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path

from fairtune.core import __version__
from fairtune.core.files import read_sealed
from fairtune.core.leases import FOLDER as LEASE
from fairtune.ledger.folders import LOCK, RunFolder
from fairtune.ledger.index_file import COLUMNS, NAME, IndexRow, Rows, read_rows, write_rows
from fairtune.ledger.seals import (
    CHECKED,
    FAILED,
    FINISHED,
    RACY,
    WAITING,
    run_facts,
    run_state,
)
from fairtune.ledger.studies import (
    read_study,
    require_study,
    study_folder,
    study_names,
)

__all__ = ["NAME", "IndexRow", "StudyStatus", "planned_status", "refresh_index", "study_status"]
LARGEST = 2**63 - 1
"""What SQLite can hold; a folder may be called by any number."""
CLOSED = (FINISHED, FAILED)
"""States that files alone decide; whether a run is running is a matter of its lock."""
UNCOUNTED = (CHECKED, LOCK, LEASE)
"""Files and folders of a run that say nothing of it."""
_VALUES = attrgetter(*(name for name in COLUMNS if name not in ("seal", "stamp")))

FileStats = dict[str, list[int]]
Stamp = tuple[int, ...]
"""Times and places of a run's folder and of its events, and the size of these; see `look_at`."""


@dataclass(frozen=True)
class StudyStatus:
    """The runs of a study's newest plan, in its order.

    Args:
        metric: that decides; None where the plan does not say.
    """

    study: str
    metric: str | None
    runs: list[IndexRow]


def study_status(runs: Path, study: str) -> StudyStatus:
    """How far a study is.

    Raises:
        LedgerError: there is no such study, or its plan cannot be read.
    """
    require_study(runs, study)
    return planned_status(runs, study, refresh_index(runs, study))


def planned_status(runs: Path, study: str, rows: list[IndexRow]) -> StudyStatus:
    """How far a study is, by rows of the index that are up to date.

    Raises:
        LedgerError: its plan cannot be read.
    """
    plan = read_study(study_folder(runs, study))
    known = {(row.arm, row.seed): row for row in rows if row.study == study}
    found = []
    for run in plan["runs"]:
        row = known.get((run["arm"], run["seed"]))
        if row is None or row.key not in (None, run["key"]):  # a run of another plan is none of this one
            row = IndexRow(study, run["arm"], run["seed"], run["key"], WAITING)
        found.append(row)
    metric = plan["task"].get("metric")
    return StudyStatus(study, metric if isinstance(metric, str) else None, found)


def refresh_index(runs: Path, study: str | None = None) -> list[IndexRow]:
    """Bring the index up to date with the folders and return its rows, ordered by study, arm and seed.

    Neither a damaged or unwritable index nor a damaged run, of this study or of another, stands in the way.

    Args:
        study: only this one's runs; None is all studies.
    """
    studies = study_names(runs) if study is None else [study]
    stored = read_rows(runs / NAME, study)
    known = stored or {}
    found = {(row.study, row.arm, row.seed): row for name in studies for row in _scan(runs, name, known)}
    changed = [row for key, row in found.items() if known.get(key) != row]
    gone = known.keys() - found.keys()
    if changed or gone or stored is None:
        with contextlib.suppress(OSError, sqlite3.Error):
            write_rows(runs / NAME, changed, gone, anew=stored is None)
    return [found[key] for key in sorted(found)]


def is_indexed(name: str) -> bool:
    """Whether a folder is called as that of a run that an index can hold: `seed-7`, not `seed-07`."""
    number = name.removeprefix("seed-")
    return number.isdecimal() and number.isascii() and name == f"seed-{int(number)}" and int(number) <= LARGEST


def make_row(study: str, folder: RunFolder) -> IndexRow:
    """A run as its folder has it."""
    look, files = look_at(str(folder.path)), list_files(str(folder.path))
    return _make_row(study, folder, look, files)  # looks come first, so that a change meanwhile is noticed next time


def is_believed(row: IndexRow, files: FileStats | None) -> bool:
    """Whether every file is as it was when a row was made."""
    return files is not None and row.status in CLOSED and row.seal == _seal(row, sorted(files.items()))


def is_stamped(row: IndexRow, look: Stamp) -> bool:
    """Whether a run's folder and events are as they were when a row was made; says nothing of a change of other files in place."""
    return row.status in CLOSED and row.stamp == _seal(row, look)


def look_at(path: str) -> Stamp:
    """What changes when a run begins, goes on or ends: the cheapest look at it; empty where it is not there."""
    return *look_at_folder(path), *look_at_events(f"{path}/events.jsonl")


def look_at_folder(path: str) -> Stamp:
    """Times and place of a folder; empty where it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - thousands of them in each look
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def look_at_events(path: str) -> Stamp:
    """Size, times and place of a file; empty where it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def list_files(path: str) -> FileStats | None:
    """Size, times and place of every file of a run; None where that would not show a change."""
    found: FileStats = {}
    try:
        return found if _list_into(found, path, "") else None
    except OSError:
        return None


def _list_into(found: FileStats, path: str, prefix: str) -> bool:
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name in UNCOUNTED:
                continue
            if entry.is_dir():
                if entry.is_symlink() or not _list_into(found, entry.path, f"{prefix}{name}/"):
                    return False
            else:
                stat = entry.stat()
                found[prefix + name] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    return True


def _scan(runs: Path, study: str, known: Rows) -> Iterator[IndexRow]:
    home = study_folder(runs, study)
    for arm, name in _places(str(home)):
        folder = RunFolder(home / arm / name)
        path = f"{home}/{arm}/{name}"
        look, files = look_at(path), list_files(path)
        row = known.get((study, arm, int(name.removeprefix("seed-"))))
        if row is None or not is_believed(row, files):
            row = _make_row(study, folder, look, files)
        elif not is_stamped(row, look):  # such as a folder in which sizes and times were noted since
            row = replace(row, stamp=_seal(row, look) if _settled(look, files) else "")
        if row.status != WAITING:
            yield row


def _places(home: str) -> Iterator[tuple[str, str]]:
    """Arms and names of a study's run folders; `run_folders` takes four times as long for them."""
    for arm in names_in(home) or ():
        for name in names_in(f"{home}/{arm}") or ():
            if name.startswith("seed-") and is_indexed(name):
                yield arm, name


def names_in(path: str) -> list[str] | None:
    """What is in a folder; None where it cannot be looked into just now."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return None


def _make_row(study: str, folder: RunFolder, look: Stamp, files: FileStats | None) -> IndexRow:
    state = run_state(folder)
    row = IndexRow(study, folder.arm, folder.seed, _key(folder), state.status, **asdict(run_facts(state)))
    if files is None or row.status not in CLOSED or not _settled(look, files):
        return row
    return replace(row, seal=_seal(row, sorted(files.items())), stamp=_seal(row, look))


def _settled(look: Stamp, files: FileStats | None) -> bool:
    """Whether the last change is so long ago that another would show."""
    changes = [look[1] if look else 0, *(stat[2] for stat in (files or {}).values())]
    return time.time() - max(changes) / 1e9 > RACY


def _key(folder: RunFolder) -> str | None:
    try:
        found = read_sealed(folder.plan).get("key")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, str) else ""


def _seal(row: IndexRow, seen: object) -> str:
    """Of what a row holds, which may be anything in a damaged one, and of what was seen on the disk."""
    content = repr(
        (__version__, _VALUES(row), seen)
    )  # in half the time that JSON takes, which counts with ten thousand rows
    return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()
