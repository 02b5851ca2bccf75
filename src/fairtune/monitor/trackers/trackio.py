"""trackio: a run per run, grouped by arm, and one more per arm with its figures, in trackio's database on this machine.

trackio's own log goes through a server and has the time of now; its store takes times, and an id for each entry, of which a second
one is left out: so what is sent twice is there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trackio.sqlite_storage import SQLiteStorage
from trackio.utils import TRACKIO_DIR

from fairtune.monitor.trackers.base import MarkFile
from fairtune.monitor.trackers.rows import TrackedPoint, TrackedRow, TrackedStudy, digest
from fairtune.settings.track import TrackioTracker

AT_ONCE = 1000


class TrackioRuns:
    """Writes runs of a project."""

    name = "trackio"
    live = True

    def __init__(self, settings: TrackioTracker, study: str) -> None:
        self._project = settings.project or study
        self.place = f"{TRACKIO_DIR}; look at it with: trackio show --project {self._project}"
        self._identity = ""
        self._marks = MarkFile(Path())

    def begin(self, study: TrackedStudy) -> None:
        self._identity = study.identity
        database = SQLiteStorage.get_project_db_path(self._project)
        self._marks = MarkFile(database.with_name(f"fairtune-{study.identity}-{digest(self._project)[:8]}.json"))

    def marks(self) -> Mapping[str, str]:
        there = {record["id"] for record in SQLiteStorage.get_run_records(self._project)}
        return {name: mark for name, mark in self._marks.marks().items() if self._marks.rows[name].get("id") in there}

    def sent(self, row: TrackedRow) -> Mapping[str, int]:  # noqa: ARG002 - no need to ask
        """Entries that are there are left out by their ids."""
        return {}

    def send(self, row: TrackedRow, points: Sequence[TrackedPoint], mark: str) -> None:
        own = digest([self._identity, row.name, row.key])[:16]
        entries = [(point, f"{own}-{point.step}-{'-'.join(sorted(point.values))}") for point in points]
        told = row.figures if row.seed is None else {"failed": float(row.state in ("failed", "damaged")), **row.figures}
        if row.seed is not None or not points:
            entries.append((TrackedPoint(row.step, row.ended or row.began or 0.0, told), f"{own}-{mark}"))
        for start in range(0, len(entries), AT_ONCE):
            some = entries[start : start + AT_ONCE]
            SQLiteStorage.bulk_log(
                self._project,
                row.name,
                [point.values for point, _ in some],
                steps=[point.step for point, _ in some],
                timestamps=[datetime.fromtimestamp(point.time, UTC).isoformat() for point, _ in some],
                config={**row.params, **row.tags, "_Group": row.arm},
                log_ids=[name for _, name in some],
                run_id=own,
            )
        self._marks.keep(row.name, mark, id=own)

    def send_study(self, study: TrackedStudy) -> None:
        """trackio has no place for a text of a whole project; each arm's run says its verdict."""

    def flush(self) -> None:
        self._marks.save()

    def close(self) -> None:
        if self._identity:
            self.flush()
