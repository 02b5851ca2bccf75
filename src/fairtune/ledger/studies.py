"""The runs folder: its studies, their runs, and the plans that each study keeps.

Plans are sealed: the newest is `study.json`, and each one is in `plans/` with its time.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from fairtune.core.errors import LedgerError, nearest, one_of
from fairtune.core.files import read_sealed, write_sealed
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.plan_shape import plan_problem
from fairtune.ledger.timings import FOLDER as TIMINGS

TIME = "%Y-%m-%dT%H:%M:%SZ"
"""How times are written."""
HISTORY = "history.json"
TRIALS = "tuning"
"""The folder of a study in which the study of its trials is."""
SHOWN = 6
"""Runs that are named when one is not found."""


def study_folder(runs: Path, study: str) -> Path:
    return runs / study


def run_folder(runs: Path, study: str, arm: str, seed: int) -> RunFolder:
    return RunFolder(study_folder(runs, study) / arm / f"seed-{seed}")


def run_folders(study: Path) -> list[RunFolder]:
    """Every run folder of a study; one that was moved aside under another name (`seed-0-old`) is none."""
    return [RunFolder(p) for p in sorted(study.glob("*/seed-*")) if p.name.removeprefix("seed-").isdecimal()]


def study_names(runs: Path) -> list[str]:
    """The studies of a runs folder, and those of their trials (`NAME/tuning`); one whose folder cannot be looked into is left out.

    Raises:
        LedgerError: the runs folder is not a folder, or cannot be read.
    """
    try:
        found = [path.name for path in runs.iterdir() if _is_study(path)]
        found += [f"{path.name}/{TRIALS}" for path in runs.iterdir() if _is_study(path / TRIALS)]
        return sorted(found)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be read ({error.strerror}); choose another with --runs."
        ) from None


def _is_study(path: Path) -> bool:
    try:
        return (path / "study.json").is_file()
    except OSError:
        return False


def require_study(runs: Path, study: str) -> Path:
    """The folder of a study that has been started."""
    if study not in study_names(runs):
        names = study_names(runs)
        known = f"; studies there: {one_of(names)}.{nearest(study, names)}" if names else "; it holds no study yet."
        raise LedgerError(f"no study '{study}' in the runs folder {runs}{known} Start one with `fairtune run FILE`.")
    return study_folder(runs, study)


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
        trials = path.name == TRIALS and _is_study(path.parent)
        return (path.parent.parent, f"{path.parent.name}/{TRIALS}") if trials else (path.parent, path.name)
    require_study(runs, name)
    return runs, name


def is_run(name: str | Path, runs: Path) -> bool:
    """Whether a run is meant, by its folder or as `study/arm/seed-n`."""
    return any((path / "plan.json").is_file() for path in (Path(name), runs / name))


def require_writable(runs: Path) -> None:
    """Fail before any work if nothing can be recorded."""
    probe = runs / f".writable-{os.getpid()}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise LedgerError(
            f"the runs folder {runs} cannot be written ({error.strerror}); choose another with --runs, or fix its permissions."
        ) from None


def find_folder(run: str | Path, runs: Path) -> RunFolder:
    """The folder of a run that has been begun.

    Args:
        run: the folder itself, or `study/arm/seed-n`.
        runs: the folder that keeps the runs.

    Raises:
        LedgerError: there is no such run.
    """
    path = next((p for p in (Path(run), runs / run) if (p / "plan.json").is_file()), None)
    if path is None:
        raise LedgerError(_unknown(str(run), runs))
    return RunFolder(path.resolve())


def _unknown(run: str, runs: Path) -> str:
    known = [
        f"{study}/{folder.arm}/{folder.path.name}"
        for study in study_names(runs)
        for folder in run_folders(study_folder(runs, study))
    ]
    if not known:
        return f"'{run}' is not a run: that folder has no plan.json, and the runs folder {runs} holds no run."
    word = Path(run).relative_to(runs) if Path(run).is_relative_to(runs) else Path(run)
    more = ", ..." if len(known) > SHOWN else ""
    return f"'{run}' is not a run; runs in {runs}: {one_of(known[:SHOWN])}{more}.{nearest(word.as_posix(), known)}"


def write_study(home: Path, plan: dict[str, Any], reanalysed: bool = False) -> None:
    """Put a plan in force: `study.json` is the newest, `plans/` has each one, and `history.json` when each came into force.

    Args:
        reanalysed: the user says that verdicts go by this plan, whatever was planned before its results were known.

    Raises:
        LedgerError: the folder cannot be written.
    """
    now, known = time.strftime(TIME, time.gmtime()), sum(folder.result.is_file() for folder in run_folders(home))
    try:
        (home / "plans").mkdir(parents=True, exist_ok=True)
        history, claimed = _read_history(home), read_claims(home)
        before = len(history), len(claimed)
        first = home / "plans" / f"{plan['plan']}.json"
        if not first.exists():
            write_sealed(first, {"recorded": now, **plan})
        new_analysis = reanalysed and known > 0
        last, looks = history[-1] if history else {}, plan.get("until_decided")
        if last.get("plan") != plan["plan"] or new_analysis or looks not in (None, last.get("until_decided")):
            entry = {"plan": plan["plan"], "recorded": now, "known": known, "until_decided": looks}
            entry |= {"reanalysed": now} if new_analysis else {}
            history.append(entry)
        claims = list(plan.get("claims") or ())
        if claims != (claimed[-1]["claims"] if claimed else []):
            claimed.append({"recorded": now, "known": known, "timed": _count_timings(home), "claims": claims})
        if (len(history), len(claimed)) != before:
            write_sealed(home / HISTORY, {"history": history, **({"claims": claimed} if claimed else {})})
        write_sealed(home / "study.json", plan)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LedgerError(f"{home}: the plan cannot be written ({reason}); fix that or use another --runs.") from None


def _read_history(home: Path) -> list[dict[str, Any]]:
    """When plans came into force; of a study from before this was kept, when each was first recorded."""
    try:
        found = read_sealed(home / HISTORY).get("history")
    except FileNotFoundError:
        plans = [(plan["recorded"], plan["plan"]) for plan in _recorded_plans(home).values()]
        return [{"plan": name, "recorded": recorded} for recorded, name in sorted(plans)]
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def read_claims(home: Path) -> list[dict[str, Any]]:
    """The claims of a study each time they were changed, the oldest first: when, how many results were on record, and all of them.

    They are no part of a plan's hash, so that writing one leaves every finished run as it is.
    """
    try:
        found = read_sealed(home / HISTORY).get("claims")
    except (OSError, ValueError):
        return []
    return [entry for entry in found if _is_claims_entry(entry)] if isinstance(found, list) else []


def _is_claims_entry(entry: Any) -> bool:
    kinds = {"recorded": str, "known": int, "timed": int, "claims": list}
    return isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in kinds.items())


def _count_timings(home: Path) -> int:
    """Timing sessions on record."""
    return sum(1 for _ in (home / TIMINGS).glob("*.json"))


def _recorded_plans(home: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for file in (home / "plans").glob("*.json"):
        try:
            plan = read_sealed(file)
        except (OSError, ValueError):
            continue
        if isinstance(plan.get("recorded"), str) and plan_problem(plan) is None:
            found[str(plan.get("plan"))] = plan
    return found


def read_plans(home: Path) -> list[dict[str, Any]]:
    """Every plan that a study had, each as often as it came into force, the oldest first.

    Those that are not what was written are left out, and `verify` names them.
    """
    plans = _recorded_plans(home)
    try:
        history = _read_history(home)
    except (OSError, ValueError):
        history = [{"plan": name, "recorded": plan["recorded"]} for name, plan in plans.items()]
    return [{**plans[entry["plan"]], **entry} for entry in history if entry.get("plan") in plans]


def read_study(home: Path) -> dict[str, Any]:
    """The newest plan.

    Raises:
        LedgerError: it is not what was written, or of a version whose plans cannot be read.
    """
    again = "run the study again to rewrite it"
    try:
        plan = read_sealed(home / "study.json")
    except OSError as error:
        raise LedgerError(f"{home / 'study.json'} cannot be read ({error.strerror}); {again}.") from None
    except ValueError as error:
        raise LedgerError(f"{home / 'study.json'} {error}; {again}.") from None
    if problem := plan_problem(plan):
        raise LedgerError(f"{home / 'study.json'} is not a plan of this version: {problem}; {again}.")
    return plan
