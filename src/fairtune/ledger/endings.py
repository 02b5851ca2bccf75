"""The record of a study's runs that came to an end: lines are only added, so a run that is moved away later is missed."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fairtune.core.files import read_sealed, sha256_of
from fairtune.ledger.events import EventLog, all_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.studies import TIME, run_folder, runs_with_result

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


def note_ending(home: Path, folder: RunFolder) -> None:
    """Record that a run ended."""
    _write(home, [], [folder], 0)


def note_endings(home: Path) -> None:
    """Record which runs have ended, and which of those on record are gone. Called before a study's runs begin."""
    folders = runs_with_result(home)
    _write(home, _missing(home, _recorded(home)[0].values()), folders, len(folders))


def gone_runs(home: Path) -> list[GoneRun]:
    """The runs that ended and were moved away or deleted, the first one noticed first."""
    ended, noticed = _recorded(home)
    missing = _missing(home, ended.values())
    known = len(runs_with_result(home)) if missing else 0
    return noticed + [GoneRun(ending, "", known) for ending in missing]


def _write(home: Path, gone: Iterable[Ending], ended: Iterable[RunFolder], known: int) -> None:
    recorded, log = set(_recorded(home)[0].values()), EventLog(home / FILE)
    for ending in gone:
        log.write(GONE, 0, **ending._asdict(), known=known)
    for folder in ended:
        with suppress(OSError, ValueError):  # a damaged result, which `verify` names
            result, digest = read_sealed(folder.result), sha256_of(folder.result)
            one = Ending(folder.arm, folder.seed, str(result["key"]), str(result["status"]), digest[:16])
            if one not in recorded:
                log.write(ENDED, 0, **one._asdict())
    log.close()


def _recorded(home: Path) -> tuple[dict[tuple[str, int], Ending], list[GoneRun]]:
    """The last ending of each run that was not found to be gone, and those that were."""
    ended: dict[tuple[str, int], Ending] = {}
    gone = []
    for event in all_events(home / FILE):
        ending = Ending(*(event[name] for name in Ending._fields))
        if event["event"] == ENDED:
            ended[ending.arm, ending.seed] = ending
        else:
            ended.pop((ending.arm, ending.seed), None)
            gone.append(GoneRun(ending, time.strftime(TIME, time.gmtime(event["time"])), event["known"]))
    return ended, gone


def _missing(home: Path, recorded: Iterable[Ending]) -> list[Ending]:
    """Endings whose very result is not there; one that failed and is being tried again has lost it to that."""
    found = []
    for ending in recorded:
        folder = run_folder(home.parent, home.name, ending.arm, ending.seed)
        there = False
        with suppress(OSError):
            there = folder.result.is_file() and sha256_of(folder.result)[:16] == ending.result
        if not there and not (ending.status == "failed" and folder.plan.exists()):
            found.append(ending)
    return found
