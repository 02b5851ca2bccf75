"""Seals: what a finished run's files held when it was closed, so that whoever reads them notices a change.

`manifest.json` names every file of the run with its sha256, and the run's key. It is written before `result.json`, which makes the
run finished: whatever kills it, a run that says it is finished has a manifest. `.checked.json` remembers the sizes and times at
which files were last seen to be whole, so that a thousand runs are not read from end to end each time; it may be deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.files import (
    as_number,
    files_of,
    first_change,
    read_json,
    read_sealed,
    sealed,
    stat_of,
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
RUN_FILES = (
    "plan.json",
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
Stat = list[int]


@dataclass(frozen=True)
class RunState:
    """Where a run stands.

    Args:
        result: what its result.json says, of a run that finished or failed.
        problem: what is wrong with a damaged run, in words that follow its name and a colon.
        unnoted: files of a finished run had to be read, since their sizes and times were not noted.
    """

    status: str
    result: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    unnoted: bool = field(default=False, compare=False)


def close_run(folder: RunFolder, key: str, result: dict[str, Any]) -> None:
    """Make a run finished: first the manifest of all that it recorded, then its result.

    Raises:
        OSError: something cannot be read or written; the run has not finished then.
        LeaseLost: another process has taken the run over, and will finish it.
    """
    require_held(folder.path)
    content = sealed({**result, "key": key})
    sums = sums_of(folder.path, _recorded(folder))
    sums[folder.result.name] = hashlib.sha256(content).hexdigest()
    require_held(folder.path)  # summing up a large model takes a while
    write_sealed(folder.manifest, {"version": VERSION, "key": key, "files": sums})
    write_atomically(folder.result, content)
    _remember(folder, {name: stat_of(folder.path / name) for name in sums})


def run_state(folder: RunFolder, key: str | None = None, *, thorough: bool = False, remember: bool = False) -> RunState:
    """Where a run stands, by files that are what they were when they were written.

    Args:
        key: of the settings that it should have; None takes any.
        thorough: read every file of a finished run again, whatever its size and times say.
        remember: note sizes and times of files that had to be read, as in a ledger that was copied, so that the next look is
            quick. Who only reads a ledger leaves it as it is.
    """
    try:
        return _state(folder, key, thorough, remember)
    except OSError as error:
        return RunState(DAMAGED, problem=f"{_named(folder, error)} cannot be read ({error.strerror})")


@dataclass(frozen=True)
class RunFacts:
    """What a list of runs says of one."""

    metric: str | None
    score: float | None
    seconds: float | None
    reason: str | None
    signature: str | None


def run_facts(state: RunState) -> RunFacts:
    """A run in one line, whatever its result holds."""
    result = state.result
    metric = result.get("metric") if isinstance(result.get("metric"), str) else None
    splits, seconds = _inner(result, "metrics"), _inner(result, "seconds")
    scores = _inner(splits, "test" if "test" in splits else "validation")  # trials have no other
    return RunFacts(
        metric=metric,
        score=as_number(scores.get(metric)),
        seconds=as_number(seconds.get("total")),
        reason=state.problem or _text(result.get("reason")),
        signature=_text(result.get("signature")),
    )


def _inner(value: dict[Any, Any], name: str) -> dict[Any, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _state(folder: RunFolder, key: str | None, thorough: bool, remember: bool) -> RunState:
    if not folder.path.exists():
        return RunState(WAITING)
    try:
        plan = read_sealed(folder.plan)
    except FileNotFoundError:
        if folder.trace() is None:
            return RunState(WAITING)
        return RunState(DAMAGED, problem="plan.json is missing, so nothing says what was trained")
    except ValueError as error:
        return RunState(DAMAGED, problem=f"plan.json {error}")
    if key is not None and plan.get("key") != key:
        return RunState(WAITING)  # a run of another plan is none of this one; it is listed under exclusions
    if not folder.result.exists():
        if is_under_way(folder):
            return RunState(RUNNING)
        closed = folder.manifest.exists() and not folder.checkpoint.exists()
        return RunState(DAMAGED, problem="result.json is missing") if closed else RunState(INTERRUPTED)
    try:
        result = read_sealed(folder.result)
    except ValueError as error:
        return RunState(DAMAGED, problem=f"result.json {error}")
    if result.get("key") != plan.get("key"):
        return RunState(DAMAGED, problem="result.json is that of a run with other settings than plan.json's")
    if result.get("status") == FAILED and not folder.manifest.exists():
        return RunState(FAILED, result)
    return _closed_state(folder, result, thorough, remember)


def _closed_state(folder: RunFolder, result: dict[str, Any], thorough: bool, remember: bool) -> RunState:
    """Finished, or damaged by what is not as it was when the run was closed."""
    sums = _sums(folder, result)
    if isinstance(sums, str):
        return RunState(DAMAGED, problem=sums)
    known = {} if thorough else (read_json(folder.path / CHECKED) or {})
    present = [*_recorded(folder), folder.result.name]
    stats = {name: stat_of(folder.path / name) for name in present}
    change = first_change(folder.path, sums, present, lambda name: known.get(name) == stats[name])
    if change is not None:
        return RunState(DAMAGED, problem=f"{change.name} {CHANGES[change.how]}")
    new = any(known.get(name) != stat for name, stat in stats.items())
    if new and remember and time.time() - max(stat[2] for stat in stats.values()) / 1e9 > RACY:
        with contextlib.suppress(OSError):  # a ledger that cannot be written can be read all the same
            _remember(folder, stats)
    return RunState(FINISHED, result, unnoted=new)


def _sums(folder: RunFolder, result: dict[str, Any]) -> dict[str, str] | str:
    """What the files of a closed run were, or what is wrong with its manifest."""
    try:
        manifest = read_sealed(folder.manifest)
    except FileNotFoundError:
        return "manifest.json is missing, so nothing says what the run recorded; runs of earlier versions have none"
    except ValueError as error:
        return f"manifest.json {error}"
    sums = manifest.get("files")
    if manifest.get("version") != VERSION or not isinstance(sums, dict):
        return f"manifest.json has version {manifest.get('version')}, which this fairtune does not know"
    if manifest.get("key") != result["key"] or folder.result.name not in sums or result.get("status") != FINISHED:
        return "manifest.json is not that of this run"
    return sums


def _recorded(folder: RunFolder) -> Iterator[str]:
    """The files that make up a run, besides its result, by their names in its folder."""
    yield from (name for name in RUN_FILES if (folder.path / name).is_file())
    for whole in RUN_FOLDERS:
        yield from (f"{whole}/{name}" for name in files_of(folder.path / whole))


def _remember(folder: RunFolder, stats: dict[str, Stat]) -> None:
    write_json(folder.path / CHECKED, stats)


def _named(folder: RunFolder, error: OSError) -> str:
    path = Path(str(error.filename or folder.path))
    return path.relative_to(folder.path).as_posix() if path.is_relative_to(folder.path) else path.name
