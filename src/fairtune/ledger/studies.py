"""The runs folder: its studies, their runs, and the plans that each study keeps.

Plans are sealed: the newest is `study.json`, and each one is in `plans/` with its time.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from fairtune.core.errors import LedgerError, nearest, one_of
from fairtune.core.files import read_sealed
from fairtune.ledger.folders import RunFolder, read_record, write_record
from fairtune.ledger.timings import FOLDER as TIMINGS

TIME = "%Y-%m-%dT%H:%M:%SZ"
"""How times are written."""
HISTORY = "history.json"
TRIALS = "tuning"
"""The folder of a study in which the study of its trials is."""
SEED_FOLDER = re.compile(r"seed-(0|[1-9][0-9]*)")


def run_folder(runs: Path, study: str, arm: str, seed: int) -> RunFolder:
    return RunFolder(runs / study / arm / f"seed-{seed}")


def run_folders(study: Path) -> list[RunFolder]:
    """Every run folder of a study; one that was moved aside under another name (`seed-0-old`) is none."""
    homes = [study / arm for arm in _names_in(study)]
    found = [home / name for home in homes for name in _names_in(home) if SEED_FOLDER.fullmatch(name)]
    return [RunFolder(path) for path in found]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []


def runs_with_result(study: Path) -> list[RunFolder]:
    return [folder for folder in run_folders(study) if folder.result.is_file()]


def study_names(runs: Path) -> list[str]:
    """The studies of a runs folder, and those of their trials (`NAME/tuning`); one whose folder cannot be read is left out.

    Raises:
        LedgerError: the runs folder is not a folder, or cannot be read.
    """
    try:
        names = os.listdir(runs)  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be read ({error.strerror}); choose another with --runs."
        ) from None
    return sorted(name for one in names for name in (one, f"{one}/{TRIALS}") if _is_study(runs / name))


def _is_study(path: Path) -> bool:
    try:
        return (path / "study.json").is_file()
    except OSError:
        return False


def require_study(runs: Path, study: str) -> Path:
    """The folder of a study that has been started."""
    if study not in (names := study_names(runs)):
        known = f"; studies there: {one_of(names)}.{nearest(study, names)}" if names else "; it holds no study yet."
        raise LedgerError(f"no study '{study}' in the runs folder {runs}{known} Start one with `fairtune run FILE`.")
    return runs / study


def find_study(name: str, runs: Path) -> tuple[Path, str]:
    """The runs folder and the name of a study that has been started.

    Args:
        name: in the runs folder, or the path of a study's own folder, which may be in another.

    Raises:
        LedgerError: there is no such study.
    """
    path = Path(name)
    if name not in study_names(runs) and _is_study(path):
        path = path.resolve()
        home = path.parent.parent if path.name == TRIALS and _is_study(path.parent) else path.parent
        return home, path.relative_to(home).as_posix()
    require_study(runs, name)
    return runs, name


def is_run(name: str, runs: Path) -> bool:
    """Whether a run is meant, by its folder or as `study/arm/seed-n`."""
    return _run_path(name, runs) is not None


def find_folder(run: str | Path, runs: Path) -> RunFolder:
    """The folder of a run that has been begun, which is given itself or as `study/arm/seed-n`.

    Raises:
        LedgerError: there is no such run.
    """
    if path := _run_path(run, runs):
        return RunFolder(path.resolve())
    known = [f"{study}/{folder.name}" for study in study_names(runs) for folder in run_folders(runs / study)]
    if not known:
        raise LedgerError(
            f"'{run}' is not a run: that folder has no plan.json, and the runs folder {runs} holds no run."
        )
    near = nearest(str(run).removeprefix(f"{runs}/"), known)
    raise LedgerError(f"'{run}' is not a run; runs in {runs}: {one_of(known, 6)}.{near}")


def _run_path(run: str | Path, runs: Path) -> Path | None:
    return next((path for path in (Path(run), runs / run) if (path / "plan.json").is_file()), None)


def require_writable(runs: Path) -> None:
    """Fail before any work if nothing can be recorded."""
    probe = runs / f".writable-{os.getpid()}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be written ({error.strerror}); choose another with --runs, or fix its permissions."
        ) from None


# -- plans -------------------------------------------------------------------------------------------------------------


def _check_folder_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError("it is no name of a folder")
    return name


FolderName = Annotated[str, AfterValidator(_check_folder_name)]
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

    Raises:
        LedgerError: the folder cannot be written, or its history is not what was written.
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
    """The newest plan.

    Raises:
        LedgerError: it is not what was written, or of another version.
    """
    file, again = home / "study.json", "run the study again to rewrite it"
    plan = read_record(file, again)
    try:
        _Plan.model_validate(plan)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(ascii(str(part)[:60])[1:-1] for part in first["loc"])
        raise LedgerError(f"{file} is not a plan of this version: {where}: {first['msg']}; {again}.") from None
    return plan
