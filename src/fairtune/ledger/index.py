"""The index: one SQLite row a run, for quick answers about many. Made from the folders; delete it whenever you like."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairtune.files import read_json
from fairtune.ledger.folders import RunFolder, is_locked, run_folders, study_names

NAME = "index.sqlite"
COLUMNS = ("study", "arm", "seed", "status", "metric", "score", "seconds", "reason", "signature", "changed")


@dataclass(frozen=True)
class IndexRow:
    """What the index knows of a run.

    Args:
        changed: time of the last change of its folder's records.
    """

    study: str
    arm: str
    seed: int
    status: str
    metric: str | None
    score: float | None
    seconds: float | None
    reason: str | None
    signature: str | None
    changed: float


def refresh_index(runs: Path) -> list[IndexRow]:
    """Bring the index up to date with the folders and return its rows; a damaged or unwritable index never stands in the way."""
    rows = list(_scan(runs))
    with contextlib.suppress(OSError, sqlite3.Error):
        _write(runs / NAME, rows)
    return rows


def read_index(runs: Path) -> list[IndexRow]:
    """The rows as last written; rebuilt where the file is missing or damaged."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{runs / NAME}?mode=ro", uri=True)) as database:
            found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY study, arm, seed").fetchall()
        return [IndexRow(*row) for row in found]
    except sqlite3.Error:
        return refresh_index(runs)


def _write(path: Path, rows: list[IndexRow]) -> None:
    try:
        _fill(path, rows)
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        _fill(path, rows)


def _fill(path: Path, rows: list[IndexRow]) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as database, database:
        database.execute(f"CREATE TABLE IF NOT EXISTS runs ({', '.join(COLUMNS)}, PRIMARY KEY (study, arm, seed))")
        database.execute("DELETE FROM runs")
        marks = ", ".join("?" for _ in COLUMNS)
        database.executemany(f"INSERT INTO runs VALUES ({marks})", [tuple(asdict(row).values()) for row in rows])


def _scan(runs: Path) -> Iterator[IndexRow]:
    for study in study_names(runs):
        for folder in run_folders(runs / study):
            if folder.plan.is_file():
                yield _row(study, folder)


def _row(study: str, folder: RunFolder) -> IndexRow:
    result: dict[str, Any] = read_json(folder.result) or {}
    status = folder.status()
    if status == "started":
        status = "running" if is_locked(folder.path / ".lock") else "interrupted"
    metric = result.get("metric")
    return IndexRow(
        study=study,
        arm=folder.arm,
        seed=folder.seed,
        status=status,
        metric=metric,
        score=result.get("metrics", {}).get("test", {}).get(metric),
        seconds=result.get("seconds", {}).get("total"),
        reason=result.get("reason"),
        signature=result.get("signature"),
        changed=max(f.stat().st_mtime for f in (folder.plan, folder.result, folder.events) if f.exists()),
    )
