"""The index: one SQLite row per run, so that views of many runs need not read them all. Delete it whenever you like.

A row is believed only while each file of its run has the size, times and place on the disk that it had when the row was made, and
while the row itself is what was written; else the run's folder is read again. So the answers are those of the folders, with an
index or without.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from fairtune.core.files import read_sealed, stat_of
from fairtune.core.version import __version__
from fairtune.ledger.folders import RunFolder
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
    run_folders,
    study_folder,
    study_names,
)

NAME = "index.sqlite"
LARGEST = 2**63 - 1
"""What SQLite can hold; a folder may be called by any number."""
PATIENCE = 2.0
"""Seconds to wait for another process that writes the index."""
CLOSED = (FINISHED, FAILED)
"""States that files alone decide; whether a run is running is a matter of its lock."""


@dataclass(frozen=True)
class IndexRow:
    """What the index knows of a run.

    Args:
        key: of the settings that it was made with; None where its plan.json does not say.
        seal: sha256 of the row and of its files' sizes and times; empty in a row that is not to be believed next time.
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
    seal: str = ""


COLUMNS = tuple(field.name for field in fields(IndexRow))
Rows = dict[tuple[str, str, int], IndexRow]


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
    stored = _read(runs / NAME)
    known = {key: row for key, row in stored.items() if study in (None, row.study)}
    rows = [row for name in studies for row in _scan(study_folder(runs, name), name, known)]
    found = {(row.study, row.arm, row.seed): row for row in rows}
    if found != known or not (runs / NAME).exists():
        with contextlib.suppress(OSError, sqlite3.Error):
            _write(runs / NAME, rows, study)
    return [found[key] for key in sorted(found)]


def _scan(home: Path, study: str, known: Rows) -> Iterator[IndexRow]:
    for folder in run_folders(home):
        if folder.seed > LARGEST or folder.path.name != f"seed-{folder.seed}":
            continue
        files = _file_stats(folder)  # before the files are read, so that a change meanwhile is noticed next time
        row = known.get((study, folder.arm, folder.seed))
        if files is None or row is None or row.status not in CLOSED or row.seal != _seal(row, files):
            row = _row(study, folder, files)
        if row.status != WAITING:
            yield row


def _row(study: str, folder: RunFolder, files: dict[str, list[int]] | None) -> IndexRow:
    state = run_state(folder)
    facts = run_facts(state)
    row = IndexRow(study, folder.arm, folder.seed, _key(folder), state.status, **asdict(facts))
    settled = files is not None and time.time() - max((stat[2] for stat in files.values()), default=0) / 1e9 > RACY
    return replace(row, seal=_seal(row, files)) if files is not None and settled and row.status in CLOSED else row


def _key(folder: RunFolder) -> str | None:
    try:
        found = read_sealed(folder.plan).get("key")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, str) else ""


def _file_stats(folder: RunFolder) -> dict[str, list[int]] | None:
    """Size, times and place of every file of a run; None where that would not show a change."""
    found = {}
    try:
        for place, folders, files in os.walk(folder.path, onerror=_fail):
            if any((Path(place) / name).is_symlink() for name in folders):
                return None
            for name in files:
                if name not in (CHECKED, folder.lock.name):
                    file = Path(place) / name
                    found[file.relative_to(folder.path).as_posix()] = stat_of(file)
    except OSError:
        return None
    return found


def _fail(error: OSError) -> None:
    raise error


def _seal(row: IndexRow, files: dict[str, list[int]]) -> str:
    values = [getattr(row, name) for name in COLUMNS if name != "seal"]
    try:
        content = json.dumps([__version__, values, sorted(files.items())])
    except (TypeError, ValueError):  # a damaged row may hold anything
        return "unknown"
    return hashlib.sha256(content.encode()).hexdigest()


def _read(path: Path) -> Rows:
    """The rows as last written; none where the file is missing or damaged."""
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE)) as database:
            found = [IndexRow(*row) for row in database.execute(f"SELECT {', '.join(COLUMNS)} FROM runs")]
        return {(row.study, row.arm, row.seed): row for row in found}
    except (sqlite3.Error, OSError, UnicodeError):
        return {}


def _write(path: Path, rows: list[IndexRow], study: str | None) -> None:
    try:
        _fill(path, rows, study)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):  # another process writes it; what it leaves is brought up to date next time
            raise
        _fill_anew(path, rows)
    except sqlite3.DatabaseError:
        _fill_anew(path, rows)


def _fill_anew(path: Path, rows: list[IndexRow]) -> None:
    path.unlink(missing_ok=True)
    _fill(path, rows, None)


def _fill(path: Path, rows: list[IndexRow], study: str | None) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as database, database:
        database.execute(f"CREATE TABLE IF NOT EXISTS runs ({', '.join(COLUMNS)}, PRIMARY KEY (study, arm, seed))")
        database.execute("DELETE FROM runs WHERE ? IS NULL OR study = ?", (study, study))
        marks = ", ".join("?" for _ in COLUMNS)
        values: list[tuple[Any, ...]] = [tuple(asdict(row).values()) for row in rows]
        database.executemany(f"INSERT INTO runs VALUES ({marks})", values)
