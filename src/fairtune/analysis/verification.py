"""Whether a study's ledger is what was written: every file read from end to end, every figure computed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairtune.analysis.ledger_runs import disagreeing_metrics, metrics_of
from fairtune.analysis.results import load_results
from fairtune.analysis.tuned_arms import read_tuning
from fairtune.core.errors import LedgerError
from fairtune.core.files import read_sealed
from fairtune.ledger.folders import RunFolder, require_study, run_folders
from fairtune.ledger.predictions import EXAMPLES_FILE, about_examples, read_predictions
from fairtune.ledger.seals import (
    DAMAGED,
    FINISHED,
    RunState,
    run_state,
)
from fairtune.ledger.studies import HISTORY, gone_runs, read_study
from fairtune.ledger.timings import read_sessions


@dataclass(frozen=True)
class CheckedStudy:
    """What was found of one study.

    Args:
        runs: number of runs on disk by state; finished ones are sound.
        problems: what is not as it was written, with the file or the run.
        changes: what was changed or removed since the first plan, each with its date.
    """

    study: str
    runs: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}


def verify_study(runs: Path, study: str) -> CheckedStudy:
    """Check everything that a study keeps; changes nothing, and no damage raises an error.

    Raises:
        LedgerError: there is no such study.
    """
    home = require_study(runs, study)
    problems: list[str] = []
    planned: dict[tuple[str, int], dict[str, Any]] = {}
    changes: list[str] = []
    try:
        plan = read_study(home)
        planned = {(run["arm"], run["seed"]): run for run in plan["runs"]}
        problems += _choices(runs, study, plan)
        if not any("trial" in arm for arm in plan["arms"].values()):  # trials have their place in their study's report
            changes += map(str, load_results(runs, study).registration.changes)
    except LedgerError as error:
        problems.append(str(error))
    problems += _study_files(home)
    states: Counter[str] = Counter()
    for folder in run_folders(home):
        state = run_state(folder, thorough=True)
        problem = state.problem if state.status == DAMAGED else None
        if state.status == FINISHED:
            problem = _figures(folder, state) or _settings(folder, planned.get((folder.arm, folder.seed)))
        states[DAMAGED if problem else state.status] += 1
        if problem:
            problems.append(f"{folder.path}: {problem}")
    for ending, noticed, _ in gone_runs(home):
        if not noticed:
            problems.append(
                f"{home / ending.arm}/seed-{ending.seed}: {ending.status}, and was moved away or deleted since"
            )
    return CheckedStudy(study, dict(states), tuple(problems), tuple(changes))


def _study_files(home: Path) -> Iterator[str]:
    for file in [*sorted((home / "plans").glob("*.json")), home / HISTORY, home / "data.json"]:
        try:
            read_sealed(file)
        except FileNotFoundError:
            continue  # of language models there is no card, of old studies no history
        except (OSError, ValueError) as error:
            reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
            yield f"{file} {reason}."
    yield from (f"{home / name}." for name in read_sessions(home)[1])
    if (home / EXAMPLES_FILE).exists() and about_examples(home / EXAMPLES_FILE) is None:
        yield f"{home / EXAMPLES_FILE} is not what was written; running the study again rewrites it."


def _choices(runs: Path, study: str, plan: dict[str, Any]) -> Iterator[str]:
    """Whether tuned settings are those of the best trials on record."""
    tuning = read_tuning(runs, study, plan, reported=0)
    for arm in tuning.arms.values() if tuning is not None else ():
        if arm.best is not None and arm.best != arm.chosen:
            yield f"{study}: the plan says that {arm.arm} chose the settings of {arm.chosen}, its trials say those of {arm.best}."


def _figures(folder: RunFolder, state: RunState) -> str | None:
    """Whether what a run's result says follows from its predictions."""
    for split, recorded in state.result.get("metrics", {}).items():
        try:
            found = metrics_of(read_predictions(folder.predictions, split))
        except LedgerError as error:
            return str(error)
        wrong = disagreeing_metrics(recorded, found)
        if wrong:
            return (
                f"result.json says {wrong[0]} is {recorded[wrong[0]]} on {split}, its predictions say {found[wrong[0]]}"
            )
    return None


def _settings(folder: RunFolder, planned: dict[str, Any] | None) -> str | None:
    """Whether a run of the newest plan has the settings that the plan says."""
    own = read_sealed(folder.plan)
    if planned is None or own.get("key") != planned.get("key") or own.get("settings") == planned.get("settings"):
        return None
    return "plan.json has other settings than the study's plan, under the same key"
