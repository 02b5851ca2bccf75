"""Tuning: the trials of a study are run like any other runs, and each arm's settings follow from their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fairtune.core.errors import FairtuneError
from fairtune.execution.study_run import Monitor, run_plan
from fairtune.ledger.trials import score_trials
from fairtune.study.controls import trained_study
from fairtune.study.plan import Plan, make_trial_plan
from fairtune.study.schema import Study
from fairtune.study.trials import Scores, Trial, Tuned, best_trial, find_trials


def tune_study(study: Study, metric: str, runs: Path, make: Callable[[], Monitor]) -> Tuned:
    """Run what is not finished of a study's trials, and choose.

    Args:
        metric: of the task, by which settings are chosen on validation.
        make: a monitor for the drawn trials, and one for those that are borrowed.

    Raises:
        FairtuneError: no trial of some arm could be run to its end.
        Stopped: it was interrupted; what was done is saved.
    """
    found = _choose(trained_study(study), metric, runs, lambda plan: _run_trials(plan, runs, make()))
    assert found is not None, "every trial was run"
    return found


def find_tuned(study: Study, metric: str, runs: Path) -> Tuned | None:
    """What the trials on record chose; None where they are not all done."""
    return _choose(trained_study(study), metric, runs, None)


def _choose(study: Study, metric: str, runs: Path, run: Callable[[Plan], None] | None) -> Tuned | None:
    """Score the drawn trials, then those that are borrowed from the best of them.

    Args:
        run: performs a plan of trials; None chooses only where all are on record.
    """
    trials = find_trials(study, metric, {})
    while True:
        plan = make_trial_plan(study, trials)
        scores = _scores(plan, runs)
        if run is None and any(trial.name not in scores for trial in trials):
            return None
        if run is not None and any(scores.get(trial.name) is None for trial in trials):
            run(plan)  # what failed is tried again, as a study's other runs are
            scores = _scores(plan, runs)
        known, trials = trials, find_trials(study, metric, scores)
        if trials == known:
            return _outcome(metric, plan, trials, scores)


def _run_trials(plan: Plan, runs: Path, monitor: Monitor) -> None:
    outcome = run_plan(plan, runs, monitor)
    if outcome.disk_full:
        raise FairtuneError("the disk is full, so tuning was stopped; free some space and run the same command again.")
    if outcome.damaged:
        name, problem = next(iter(outcome.damaged.items()))
        raise FairtuneError(
            f"trial {plan.study.study}/{name} is damaged: {problem}. Move its folder away to run it again; without it nothing is "
            "chosen."
        )


def _scores(plan: Plan, runs: Path) -> Scores:
    return {trial.name: trial.mean for trial in score_trials(runs, plan.as_json()) if trial.ended}


def _outcome(metric: str, plan: Plan, trials: list[Trial], scores: Scores) -> Tuned:
    counts, choices = Counter(trial.arm for trial in trials), {}
    for arm in counts:
        best = best_trial([trial for trial in trials if trial.arm == arm], metric, scores)
        if best is None:
            raise FairtuneError(
                f"arm '{arm}': a run of every trial failed, so there is nothing to choose; `fairtune status {plan.study.study}` "
                "says why. Change `tune.space`, or set `tune=null` for the settings as given."
            )
        choices[arm] = best
    return Tuned(plan.hash, choices, dict(counts), len(plan.runs))
