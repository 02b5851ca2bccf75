"""The record of a study's runs that came to an end: lines are only added, so a run that is moved away later is missed."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any, NamedTuple

from fairtune.core.files import read_sealed
from fairtune.ledger.events import EventLog, all_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.studies import TIME, run_folder, run_folders

FILE = "endings.jsonl"
ENDED, GONE = "ended", "gone"


class Ending(NamedTuple):
    """How a run ended: finished or failed; `result` is the beginning of its result's sha256."""

    arm: str
    seed: int
    key: str
    status: str
    result: str


class GoneRun(NamedTuple):
    """A run that ended, and is no longer in the runs folder.

    Args:
        noticed: when; empty where the study was not run since.
        known: results on record at that time.
    """

    ending: Ending
    noticed: str
    known: int


Places = dict[tuple[str, int], Ending]


def note_ending(home: Path, folder: RunFolder) -> None:
    """Record that a run ended."""
    _note(home, _on_record(home), [] if (ending := _ending(folder)) is None else [ending])


def note_endings(home: Path) -> None:
    """Record which runs have ended, and which of those on record are gone. Called before a study's runs begin."""
    recorded, there = _on_record(home), _on_disk(home)
    log = EventLog(home / FILE)
    for ending in _missing(home, recorded, there):
        log.write(GONE, 0, **ending._asdict(), known=len(there))
    log.close()
    _note(home, recorded, list(there.values()))


def gone_runs(home: Path) -> list[GoneRun]:
    """The runs that ended and were moved away or deleted, the first one noticed first."""
    noticed = [
        GoneRun(_read(event), time.strftime(TIME, time.gmtime(event["time"])), event["known"])
        for event in all_events(home / FILE)
        if event["event"] == GONE
    ]
    there = _on_disk(home)
    return noticed + [GoneRun(ending, "", len(there)) for ending in _missing(home, _on_record(home), there)]


def _note(home: Path, recorded: Places, endings: list[Ending]) -> None:
    log = EventLog(home / FILE)
    for ending in endings:
        if recorded.get((ending.arm, ending.seed)) != ending:
            log.write(ENDED, 0, **ending._asdict())
    log.close()


def _on_record(home: Path) -> Places:
    """The last ending of each run that was not found to be gone."""
    found: Places = {}
    for event in all_events(home / FILE):
        ending = _read(event)
        if event["event"] == ENDED:
            found[ending.arm, ending.seed] = ending
        else:
            found.pop((ending.arm, ending.seed), None)
    return found


def _on_disk(home: Path) -> Places:
    endings = [ending for folder in run_folders(home) if (ending := _ending(folder)) is not None]
    return {(ending.arm, ending.seed): ending for ending in endings}


def _ending(folder: RunFolder) -> Ending | None:
    if not folder.result.is_file():  # reading a pipe would wait for its writer
        return None
    try:
        result, digest = read_sealed(folder.result), hashlib.sha256(folder.result.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    return Ending(folder.arm, folder.seed, str(result.get("key")), str(result.get("status")), digest[:16])


def _missing(home: Path, recorded: Places, there: Places) -> list[Ending]:
    """Endings whose result is not there; one that failed and is being tried again has lost its result to that."""
    return [
        ending
        for place, ending in recorded.items()
        if there.get(place) != ending
        and not (ending.status == "failed" and run_folder(home.parent, home.name, *place).plan.exists())
    ]


def _read(event: dict[str, Any]) -> Ending:
    return Ending(*(event[name] for name in Ending._fields))
