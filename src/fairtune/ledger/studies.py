"""What a study keeps on record: its plans, since when each was in force, its claims, and which of its runs came to an end; and of
which studies a suite was made.

Plans are sealed: the newest is `study.json`, and each one is in `plans/` with its time. Endings are lines that are only added, so
that a run that is moved away later is missed. A suite is nothing but a list of studies, and a list that is written after the
results can choose the answer: it is recorded before the first run of it, and again each time it is another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed, sha256_of
from fairtune.ledger.events import EventLog, all_events
from fairtune.ledger.folders import RunFolder, read_record, run_folder, runs_with_result, write_record
from fairtune.ledger.timings import FOLDER as TIMINGS

TIME = "%Y-%m-%dT%H:%M:%SZ"
"""How times are written."""
HISTORY = "history.json"
ENDINGS = "endings.jsonl"
ENDED, GONE = "ended", "gone"
SUITES = "suites"
"""The folder of suites, next to the studies; what is in it has no `study.json`, so that nothing takes it for one."""
SUITE_FIELDS = ("study", "task", "model", "metric")
"""What a suite's record says of each study."""


FolderName = Annotated[str, Field(pattern=r"^[^/.\x00][^/\x00]*$")]
"""A folder that came from elsewhere may hold a plan made by hand: an arm that is called `../..` must not lead anyone out of it."""


class _PlannedArm(BaseModel):
    control: str | None


class _PlannedRun(BaseModel):
    arm: FolderName
    seed: int = Field(ge=0)
    key: str


class _Plan(BaseModel):
    """What tells a plan of this version from others."""

    task: dict[str, Any]
    compare: dict[str, Any]
    arms: dict[FolderName, _PlannedArm]
    runs: list[_PlannedRun]


def write_study(home: Path, plan: dict[str, Any], reanalysed: bool = False) -> None:
    """Put a plan in force: `study.json` is the newest, `plans/` has each one, and `history.json` when each came into force.

    Args:
        reanalysed: the user says that verdicts go by this plan, whatever was planned before its results were known.
    """
    now, known = time.strftime(TIME, time.gmtime()), len(runs_with_result(home))
    record: dict[str, Any] = {"history": []}
    if (home / HISTORY).exists():
        record = read_record(home / HISTORY, "bring it back, or move the study's folder away")
    before = dict(record)
    first = home / "plans" / f"{plan['plan']}.json"
    if not first.exists():
        write_record(first, {"recorded": now, **plan})
    new_analysis = reanalysed and known > 0
    last, looks = (record["history"] or [{}])[-1], plan.get("until_decided")
    if last.get("plan") != plan["plan"] or new_analysis or looks not in (None, last.get("until_decided")):
        entry = {"plan": plan["plan"], "recorded": now, "known": known, "until_decided": looks}
        record["history"] = [*record["history"], entry | ({"reanalysed": now} if new_analysis else {})]
    claims, claimed = list(plan.get("claims") or ()), record.get("claims", [])
    if claims != (claimed[-1]["claims"] if claimed else []):
        timed = sum(1 for _ in (home / TIMINGS).glob("*.json"))
        record["claims"] = [*claimed, {"recorded": now, "known": known, "timed": timed, "claims": claims}]
    if record != before:
        write_record(home / HISTORY, record)
    write_record(home / "study.json", plan)


def read_claims(home: Path) -> list[dict[str, Any]]:
    """The claims of a study each time they were changed, the oldest first: when, how many results were on record, and all of them.

    They are no part of a plan's hash, so that writing one leaves every finished run as it is.
    """
    return _read_history(home).get("claims", [])


def read_plans(home: Path) -> list[dict[str, Any]]:
    """Every plan that a study had, each as often as it came into force, the oldest first.

    Those that are not what was written are left out, and `verify` names them.
    """
    plans = {}
    for file in (home / "plans").glob("*.json"):
        with suppress(OSError, ValueError):
            plan = read_sealed(file)
            plans[plan["plan"]] = plan
    history = _read_history(home).get("history") or sorted(plans.values(), key=lambda plan: plan["recorded"])
    return [{**plans[entry["plan"]], **entry} for entry in history if entry["plan"] in plans]


def _read_history(home: Path) -> dict[str, list[dict[str, Any]]]:
    """When plans and claims came into force; empty where that is damaged, which `verify` names."""
    with suppress(OSError, ValueError):
        return read_sealed(home / HISTORY)
    return {}


def read_study(home: Path) -> dict[str, Any]:
    """The newest plan."""
    file, again = home / "study.json", "run the study again to rewrite it"
    plan = read_record(file, again)
    try:
        _Plan.model_validate(plan)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise LedgerError(f"{file} is not a plan of this version: {where}: {first['msg']}; {again}.") from None
    return plan


class Ending(NamedTuple):
    """How a run ended: finished or failed; `result` is the beginning of its result's sha256."""

    arm: str
    seed: int
    key: str
    status: str
    result: str


class GoneRun(NamedTuple):
    """A run that ended and is gone: when that was noticed (empty where the study was not run since), and results known then."""

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
    recorded, log = set(_recorded(home)[0].values()), EventLog(home / ENDINGS)
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
    for event in all_events(home / ENDINGS):
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


def suite_folder(runs: Path, suite: str) -> Path:
    return runs / SUITES / suite


def count_results(runs: Path, study: str) -> int:
    """Runs of a study that have a result; trials are none."""
    return len(runs_with_result(runs / study))


def record_suite(runs: Path, suite: str, studies: Sequence[Mapping[str, str]]) -> None:
    """Put it on record that the suite is made of these studies, unless the last record says so."""
    stated = [{field: one[field] for field in SUITE_FIELDS} for one in studies]
    history = read_suite_history(runs, suite)
    if history and history[-1]["studies"] == stated:
        return
    names = dict.fromkeys(one["study"] for entry in (*history, {"studies": stated}) for one in entry["studies"])
    known = {name: count_results(runs, name) for name in names}
    entry = {"recorded": time.strftime(TIME, time.gmtime()), "studies": stated, "known": known}
    write_record(suite_folder(runs, suite) / HISTORY, {"history": [*history, entry]})


def read_suite_history(runs: Path, suite: str) -> list[dict[str, Any]]:
    """What was recorded of a suite, the oldest first; empty where nothing was."""
    file = suite_folder(runs, suite) / HISTORY
    if not file.exists():
        return []
    found: list[dict[str, Any]] = read_record(file, "bring it back, or delete it to begin a new record")["history"]
    return found


def suite_names(runs: Path) -> list[str]:
    """The suites of a runs folder that have a record."""
    return sorted(file.parent.name for file in (runs / SUITES).glob(f"*/{HISTORY}"))


def suite_problems(runs: Path) -> list[str]:
    """Records of suites that are not what was written, each in a sentence."""
    found = []
    for name in suite_names(runs):
        try:
            read_suite_history(runs, name)
        except LedgerError as error:
            found.append(str(error))
    return found
