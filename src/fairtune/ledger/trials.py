"""The trials of a study as its ledger has them: what each tried, what it scored on validation, and what it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from fairtune.core.files import read_sealed
from fairtune.ledger.folders import TRIALS, run_folder, runs_with_result
from fairtune.ledger.seals import FAILED, FINISHED, run_state


@dataclass(frozen=True)
class TrialScores:
    """One trial with what it scored.

    Args:
        point: the values of tuned fields.
        share: of the trials' budget; below 1 in early rounds of successive halving, which earlier versions had.
        origin: drawn, or borrowed from another arm.
        seeds: that it is planned with.
        scores: on validation, by seed, of the runs that finished.
        seconds: of all its runs.
        work: tokens that went through training, times the passes of its methods; seconds would count what else the machine did.
        failed: runs that failed, or scored no number.
        ended: whether all its runs finished or failed.
    """

    name: str
    arm: str
    point: dict[str, Any]
    share: float
    origin: str
    seeds: tuple[int, ...]
    scores: dict[int, float]
    seconds: float
    work: float
    failed: int
    ended: bool

    @property
    def mean(self) -> float | None:
        """The score by which settings are chosen; None where a run failed, so that what breaks is not chosen for its luck."""
        return fmean(self.scores.values()) if self.scores and not self.failed else None


def trials_name(study: str) -> str:
    """The study of a study's trials."""
    return f"{study}/{TRIALS}"


def read_trials(runs: Path, study: str, plan: str) -> list[TrialScores] | None:
    """The trials of a plan of trials, by its hash, in its order; None where that plan is not on record, or damaged."""
    try:
        return score_trials(runs, read_sealed(runs / trials_name(study) / "plans" / f"{plan}.json"))
    except (OSError, ValueError):
        return None


def score_trials(runs: Path, plan: dict[str, Any]) -> list[TrialScores]:
    """The trials of a plan of trials, in its order, as far as they have been run; only runs of its very settings count."""
    keys: dict[str, dict[int, str]] = {}
    for run in plan["runs"]:
        keys.setdefault(run["arm"], {})[run["seed"]] = run["key"]
    return [_score(runs, plan, name, keys[name]) for name in plan["arms"]]


def _score(runs: Path, plan: dict[str, Any], name: str, keys: dict[int, str]) -> TrialScores:
    arm, metric = plan["arms"][name], plan["task"]["metric"]
    states = {seed: run_state(run_folder(runs, plan["study"], name, seed), key) for seed, key in keys.items()}
    results = {seed: state.result for seed, state in states.items() if state.status == FINISHED}
    scores = {seed: result["metrics"]["validation"][metric] for seed, result in results.items()}
    failed = [state.status for state in states.values()].count(FAILED)
    return TrialScores(
        name=name,
        arm=str(arm["trial"]["arm"]),
        point=dict(arm["trial"]["point"]),
        share=float(arm["trial"].get("share", 1)),
        origin=str(arm["trial"]["origin"]),
        seeds=tuple(keys),
        scores={seed: score for seed, score in scores.items() if score is not None},
        seconds=sum(float(result["seconds"]["total"]) for result in results.values()),
        work=sum(int(result.get("tokens") or 0) for result in results.values()) * float(arm.get("step_factor", 1.0)),
        failed=failed + list(scores.values()).count(None),
        ended=failed + len(results) == len(keys),
    )


def count_others(runs: Path, study: str, trials: Iterable[TrialScores]) -> int:
    """Runs of trials on disk that are none of these: of an earlier space or budget, or with other seeds."""
    known = {(trial.name, seed) for trial in trials for seed in trial.seeds}
    return sum((folder.arm, folder.seed) not in known for folder in runs_with_result(runs / trials_name(study)))
