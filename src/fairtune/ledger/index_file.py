"""The file of the index: SQLite tables with one row per run, and one curve per run that has ended. It holds nothing of its own."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

NAME = "index.sqlite"
PATIENCE = 2.0
"""Seconds to wait for another process that writes the index."""

Key = tuple[str, str, int]
"""Study, arm and seed of a run."""
Curve = tuple[str, str]
"""A curve's seal and its text."""


@dataclass(frozen=True)
class IndexRow:
    """What the index knows of a run.

    Args:
        key: of the settings that it was made with; None where its plan.json does not say.
        seal: sha256 of the row and of its files' sizes and times; empty in a row that is not to be believed next time.
        stamp: sha256 of the row and of the times of its folder and its events, which costs two looks at the disk to compare
            and tells of all that fairtune itself does to a run; empty where the seal is.
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
    stamp: str = ""


COLUMNS = tuple(field.name for field in fields(IndexRow))
Rows = dict[Key, IndexRow]
TABLES = (
    f"CREATE TABLE IF NOT EXISTS runs ({', '.join(COLUMNS)}, PRIMARY KEY (study, arm, seed))",
    "CREATE TABLE IF NOT EXISTS curves (study, arm, seed, seal, curve, PRIMARY KEY (study, arm, seed))",
)
WHOSE = "WHERE ?1 IS NULL OR study = ?1"


def read_rows(path: Path, study: str | None = None) -> Rows | None:
    """The rows as last written; None where the file is missing, damaged, or of another version.

    Args:
        study: only this one's; None is all.
    """
    try:
        with _opened_to_read(path, PATIENCE) as database:
            found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM runs {WHOSE}", (study,)).fetchall()
    except (sqlite3.Error, OSError, UnicodeError):
        return None
    rows = [IndexRow(*row) for row in found]
    return {(row.study, row.arm, row.seed): row for row in rows}


def read_curves(path: Path, study: str) -> dict[tuple[str, int], Curve]:
    """The curves of a study's runs by arm and seed, as last written; none where the file cannot be read."""
    try:
        with _opened_to_read(path, PATIENCE) as database:
            found = database.execute("SELECT arm, seed, seal, curve FROM curves WHERE study = ?", (study,)).fetchall()
    except (sqlite3.Error, OSError, UnicodeError):
        return {}
    return {
        (arm, seed): (seal, curve)
        for arm, seed, seal, curve in found
        if isinstance(seal, str) and isinstance(curve, str)
    }


def write_rows(
    path: Path,
    rows: Iterable[IndexRow],
    gone: Collection[Key] = (),
    curves: Mapping[Key, Curve] | None = None,
    *,
    anew: bool = False,
    patience: float | None = None,
) -> None:
    """Put rows and curves into the index, and take those of runs out that are gone; all others stay.

    Args:
        anew: where nothing in the file could be read, so that it has to be made anew.

    Raises:
        OSError, sqlite3.Error: it cannot be written, or another process writes it, and its rows are brought up to date next time.
    """
    listed, wait = list(rows), PATIENCE if patience is None else patience
    with contextlib.suppress(FileNotFoundError):
        _require_regular(path)
    try:
        _fill(path, listed, gone, curves or {}, wait)
    except sqlite3.OperationalError as error:
        if not anew or "locked" in str(error):
            raise
        path.unlink(missing_ok=True)
        _fill(path, listed, gone, curves or {}, wait)
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        _fill(path, listed, gone, curves or {}, wait)


def _fill(
    path: Path, rows: list[IndexRow], gone: Collection[Key], curves: Mapping[Key, Curve], patience: float
) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=patience)) as database, database:
        for table in TABLES:
            database.execute(table)
        for name in ("runs", "curves"):
            database.executemany(f"DELETE FROM {name} WHERE study = ? AND arm = ? AND seed = ?", map(_storable, gone))
        values = [_storable([getattr(row, name) for name in COLUMNS]) for row in rows]
        database.executemany(f"REPLACE INTO runs VALUES ({', '.join('?' for _ in COLUMNS)})", values)
        kept = [_storable((*key, *curve)) for key, curve in curves.items()]
        database.executemany("REPLACE INTO curves VALUES (?, ?, ?, ?, ?)", kept)


def _storable(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a row with halves of surrogate pairs, which a run's reason may hold and SQLite refuses, written out."""
    return tuple(
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value for value in values
    )


def _require_regular(path: Path) -> None:
    """SQLite would wait for ever for a pipe that nobody writes to, and write into whatever a link leads to.

    Raises:
        OSError: it is missing, or not a regular file.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


@contextlib.contextmanager
def _opened_to_read(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    _require_regular(path)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=patience)) as database:
        yield database
