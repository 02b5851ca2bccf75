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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtune.core.files import (
    files_of,
    read_json,
    read_sealed,
    sealed,
    sha256_of,
    sums_of,
    write_atomically,
    write_json,
    write_sealed,
)  # fmt: skip
from fairtune.core.locks import require_held
from fairtune.ledger.folders import RunFolder, is_under_way

VERSION = 1
CHECKED = ".checked.json"
PLAN, RESULT, MANIFEST = "plan.json", "result.json", "manifest.json"
RUN_FILES = (
    RESULT, MANIFEST, PLAN, "environment.json", "card.json", "events.jsonl", "predictions.parquet", "samples.json", "timing.json",
)  # fmt: skip
"""A result first, which comes last on the disk: where there is one, all other files are as they stay."""
RUN_FOLDERS = ("records", "model")
"""Folders of a run that are closed with all they hold: one more file is a change, too."""

FINISHED, FAILED, RUNNING, INTERRUPTED, WAITING, DAMAGED = (
    "finished", "failed", "running", "interrupted", "waiting", "damaged",
)  # fmt: skip
FileStats = dict[str, list[int]]
"""Files of a run, each with its size, times and place on the disk."""


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    Args:
        result: what its result.json says, of a run that finished or failed.
        problem: what is wrong with a damaged run, in words that follow its name and a colon.
        key: of the settings that it was made with; None where its plan.json does not say.
        plan: under which it was made, by its hash.
        files: that it was judged by.
    """

    status: str
    result: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    key: str | None = None
    plan: str | None = None
    files: FileStats = field(default_factory=dict, repr=False, compare=False)

    def of(self, key: str | None) -> RunState:
        """The same for who asks about a run of these settings: that of another plan is none of this one."""
        return self if key is None or self.key in (None, key) else RunState(WAITING, key=self.key, files=self.files)


class KeptStates:
    """The states of runs that are asked for again and again: one that has ended is read again once a file of it has changed."""

    def __init__(self) -> None:
        self._ended: dict[Path, RunState] = {}

    def state(self, folder: RunFolder) -> RunState:
        """The same as `run_state`."""
        found = self._ended.get(folder.path)
        with contextlib.suppress(OSError):
            if found is not None and files_of_run(folder) != found.files:
                found = None
        if found is None:
            found = run_state(folder)
            if RESULT in found.files:
                self._ended[folder.path] = found
        return found


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
    state = _state(folder, thorough)
    if remember and state.status == FINISHED:
        stats = {name: seen for name, seen in state.files.items() if name != MANIFEST}
        with contextlib.suppress(OSError):  # a ledger that cannot be written can be read all the same
            if read_json(folder.path / CHECKED) != stats:
                write_json(folder.path / CHECKED, stats)
    return state.of(key)


def _state(folder: RunFolder, thorough: bool) -> RunState:
    found: str | None = None
    files: FileStats = {}
    try:
        files = files_of_run(folder)
        if PLAN not in files:
            if folder.trace() is None or folder.plan.is_file():  # it began a moment ago
                return RunState(WAITING)
            raise _DamageError("plan.json is missing, so nothing says what was trained")
        plan = _read(folder, PLAN)
        found = str(plan.get("key"))
        state = _begun_state(folder, files, found, thorough)
        return replace(state, key=found, plan=plan.get("plan"), files=files)
    except _DamageError as damage:
        return RunState(DAMAGED, problem=str(damage), key=found, files=files)
    except OSError as error:
        name = os.path.relpath(error.filename or folder.path, folder.path)
        return RunState(DAMAGED, problem=f"{name} cannot be read ({error.strerror})", key=found, files=files)


def files_of_run(folder: RunFolder) -> FileStats:
    """Every file that makes up a run, by its name in the folder; pipes and the like are none."""
    home, found, names = str(folder.path), FileStats(), list(RUN_FILES)
    for whole in RUN_FOLDERS:
        if os.path.isdir(f"{home}/{whole}"):  # noqa: PTH112
            names += (f"{whole}/{name}" for name in files_of(folder.path / whole))
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(f"{home}/{name}")  # noqa: PTH116 - strings are quicker, and a ledger has thousands of runs
            if stat.S_ISREG(seen.st_mode):
                found[name] = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]
    return found


class _DamageError(Exception):
    """What is wrong with a run, in words that follow its name and a colon."""


def _begun_state(folder: RunFolder, files: FileStats, key: str, thorough: bool) -> RunState:
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
        raise _DamageError("manifest.json is missing, so nothing says what the run recorded")
    _check_sums(folder, files, key, thorough)
    if result.get("status") != FINISHED:
        raise _DamageError("manifest.json is not that of this run")
    return RunState(FINISHED, result)


def _check_sums(folder: RunFolder, files: FileStats, key: str, thorough: bool) -> None:
    """Compare a closed run's files with its manifest; those whose sizes and times are as they were need not be read."""
    manifest = _read(folder, MANIFEST)
    if (manifest.get("version"), manifest.get("key")) != (VERSION, key):
        raise _DamageError("manifest.json is not that of this run")
    sums = manifest["files"]
    stats = {name: seen for name, seen in files.items() if name != MANIFEST}
    if missing := sums.keys() - stats.keys():
        raise _DamageError(f"{min(missing)} is missing")
    if added := stats.keys() - sums.keys():
        raise _DamageError(f"{min(added)} is not of this run")
    known = {} if thorough else (read_json(folder.path / CHECKED) or {})
    for name in sums:
        if known.get(name) != stats[name] and sha256_of(folder.path / name) != sums[name]:
            raise _DamageError(f"{name} was changed after the run was closed")


def _read(folder: RunFolder, name: str) -> dict[str, Any]:
    try:
        return read_sealed(folder.path / name)
    except ValueError as error:
        raise _DamageError(f"{name} {error}") from None
