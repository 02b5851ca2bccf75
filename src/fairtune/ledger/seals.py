"""Seals: what a finished run's files held when it was closed, so that every reader notices a change.

`manifest.json` names every file of the run with its sha256, and the run's key. It is written before `result.json`, which makes the
run finished: whatever kills it, a run that says it is finished has a manifest. `.checked.json` remembers the sizes and times at
which files were last seen to be whole, so that a thousand runs are not read from end to end each time; it may be deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from dataclasses import dataclass, field, replace
from typing import Any

from fairtune.core.files import (
    files_of,
    first_change,
    read_json,
    read_sealed,
    sealed,
    sums_of,
    write_atomically,
    write_json,
    write_sealed,
)
from fairtune.core.leases import require_held
from fairtune.ledger.folders import RunFolder, is_under_way

VERSION = 1
CHECKED = ".checked.json"
RACY = 2.0
"""Seconds after a file's last change in which another change might not show in its times."""
PLAN, RESULT, MANIFEST = "plan.json", "result.json", "manifest.json"
RUN_FILES = (
    PLAN,
    "environment.json",
    "card.json",
    "events.jsonl",
    "predictions.parquet",
    "samples.json",
    "timing.json",
)
"""Files of a run besides its result."""
RUN_FOLDERS = ("records", "model")
"""Folders of a run that are closed with all they hold: one more file is a change, too."""

FINISHED, FAILED, RUNNING, INTERRUPTED, WAITING, DAMAGED = (
    "finished", "failed", "running", "interrupted", "waiting", "damaged",
)  # fmt: skip
CHANGES = {"missing": "is missing", "added": "is not of this run", "changed": "was changed after the run was closed"}
FileStats = dict[str, list[int]]
"""Files of a run, each with its size, times and place on the disk."""


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    Args:
        result: what its result.json says, of a run that finished or failed.
        problem: what is wrong with a damaged run, in words that follow its name and a colon.
        key: of the settings that it was made with; None where its plan.json does not say.
        files: that it was judged by.
    """

    status: str
    result: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    key: str | None = None
    files: FileStats = field(default_factory=dict, repr=False, compare=False)


def close_run(folder: RunFolder, key: str, result: dict[str, Any]) -> None:
    """Make a run finished: first the manifest of all that it recorded, then its result.

    Raises:
        OSError: something cannot be read or written; the run has not finished then.
        LeaseLost: another process has taken the run over, and will finish it.
    """
    require_held(folder.path)
    content = sealed({**result, "key": key})
    sums = sums_of(folder.path, (name for name in files_of_run(folder) if name not in (RESULT, MANIFEST)))
    sums[RESULT] = hashlib.sha256(content).hexdigest()
    require_held(folder.path)  # summing up a large model takes a while
    write_sealed(folder.manifest, {"version": VERSION, "key": key, "files": sums})
    write_atomically(folder.result, content)
    stats = files_of_run(folder)
    write_json(folder.path / CHECKED, {name: stats[name] for name in sums})


def run_state(folder: RunFolder, key: str | None = None, *, thorough: bool = False, remember: bool = False) -> RunState:
    """Where a run stands, by files that are what they were when they were written.

    Args:
        key: of the settings that it should have; None takes any.
        thorough: read every file of a finished run again, whatever its size and times say.
        remember: note sizes and times of files that had to be read, as in a ledger that was copied, so that the next look is
            quick. Else a ledger is left as it is.
    """
    found: str | None = None
    files: FileStats = {}
    try:
        if not folder.path.exists():
            return RunState(WAITING)
        files = files_of_run(folder)
        if PLAN not in files:
            if folder.trace() is None:
                return RunState(WAITING)
            raise _DamageError("plan.json is missing, so nothing says what was trained")
        found = str(_read(folder, PLAN).get("key"))
        if key not in (None, found):  # a run of another plan is none of this one; it is listed under exclusions
            return RunState(WAITING, key=found, files=files)
        return replace(_begun_state(folder, files, found, thorough, remember), key=found, files=files)
    except _DamageError as damage:
        return RunState(DAMAGED, problem=str(damage), key=found, files=files)
    except OSError as error:
        name = os.path.relpath(error.filename or folder.path, folder.path)
        return RunState(DAMAGED, problem=f"{name} cannot be read ({error.strerror})", key=found, files=files)


def files_of_run(folder: RunFolder) -> FileStats:
    """Every file that makes up a run, by its name in the folder; pipes and the like are none."""
    home, names = str(folder.path), list(RUN_FILES)
    for whole in RUN_FOLDERS:
        if os.path.isdir(f"{home}/{whole}"):  # noqa: PTH112 - strings are quicker, and a ledger has thousands of runs
            names += [f"{whole}/{name}" for name in files_of(folder.path / whole)]
    found: FileStats = {}
    for name in (*names, RESULT, MANIFEST):
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(f"{home}/{name}")  # noqa: PTH116
            if stat.S_ISREG(seen.st_mode):
                found[name] = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]
    return found


class _DamageError(Exception):
    """What is wrong with a run, in words that follow its name and a colon."""


def _begun_state(folder: RunFolder, files: FileStats, key: str, thorough: bool, remember: bool) -> RunState:
    if RESULT not in files:
        if is_under_way(folder):
            return RunState(RUNNING)
        closed = MANIFEST in files and not folder.checkpoint.exists()
        if closed and not folder.result.is_file():  # else it was closed a moment ago
            raise _DamageError("result.json is missing")
        return RunState(INTERRUPTED)
    result = _read(folder, RESULT)
    if str(result.get("key")) != key:
        raise _DamageError("result.json is that of a run with other settings than plan.json's")
    if MANIFEST not in files:
        if result.get("status") == FAILED:
            return RunState(FAILED, result)
        raise _DamageError(
            "manifest.json is missing, so nothing says what the run recorded; runs of earlier versions have none"
        )
    sums = _sums(folder, key)
    if RESULT not in sums or result.get("status") != FINISHED:
        raise _DamageError("manifest.json is not that of this run")
    known = {} if thorough else (read_json(folder.path / CHECKED) or {})
    stats = {name: seen for name, seen in files.items() if name != MANIFEST}
    change = first_change(folder.path, sums, stats, lambda name: known.get(name) == stats[name])
    if change is not None:
        raise _DamageError(f"{change.name} {CHANGES[change.how]}")
    if remember and known != stats and is_settled(stats):
        with contextlib.suppress(OSError):  # a ledger that cannot be written can be read all the same
            write_json(folder.path / CHECKED, stats)
    return RunState(FINISHED, result)


def _sums(folder: RunFolder, key: str) -> dict[str, str]:
    """The sums of a closed run's files."""
    manifest = _read(folder, MANIFEST)
    sums = manifest.get("files")
    if manifest.get("version") != VERSION or not isinstance(sums, dict):
        raise _DamageError(f"manifest.json has version {manifest.get('version')}, which this fairtune does not know")
    if manifest.get("key") != key:
        raise _DamageError("manifest.json is not that of this run")
    return sums


def _read(folder: RunFolder, name: str) -> dict[str, Any]:
    try:
        return read_sealed(folder.path / name)
    except ValueError as error:
        raise _DamageError(f"{name} {error}") from None


def is_settled(files: FileStats) -> bool:
    """Whether the last change is so long ago that another would show."""
    return time.time() - max((seen[2] for seen in files.values()), default=0) / 1e9 > RACY
