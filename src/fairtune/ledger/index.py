"""The index: one SQLite row per run, for quick answers about many. Made from the folders; delete it whenever you like."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from fairtune.ledger.folders import RunFolder
from fairtune.ledger.seals import (
    WAITING,
    RunState,
    run_facts,
    run_state,
)
from fairtune.ledger.studies import run_folders, study_names

NAME = "index.sqlite"
LARGEST = 2**63 - 1
"""What SQLite can hold; a folder may be called by any number."""
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
    """Bring the index up to date with the folders and return its rows.

    Neither a damaged or unwritable index nor a damaged run, of this study or of another, stands in the way.
    """
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
            state = run_state(folder)
            if state.status != WAITING and folder.seed <= LARGEST:
                yield _row(study, folder, state)


def _row(study: str, folder: RunFolder, state: RunState) -> IndexRow:
    facts = run_facts(state)
    return IndexRow(
        study=study,
        arm=folder.arm,
        seed=folder.seed,
        status=state.status,
        metric=facts.metric,
        score=facts.score,
        seconds=facts.seconds,
        reason=facts.reason,
        signature=facts.signature,
        changed=_changed(folder),
    )


def _changed(folder: RunFolder) -> float:
    times = [0.0]
    for file in (folder.plan, folder.result, folder.events):
        with contextlib.suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)
