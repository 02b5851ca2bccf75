"""The plan of a study's trials, which is that of a study of its own, and what it will cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairtune.study.added_arms import trained_study
from fairtune.study.audit import arm_settings
from fairtune.study.inputs import find_inputs
from fairtune.study.plan import Plan, plan_runs, run_settings
from fairtune.study.run_spec import hash_of
from fairtune.study.schema import Study
from fairtune.study.trials import Trial, find_trials, trial_study


def make_trial_plan(study: Study, trials: Sequence[Trial]) -> Plan:
    """The plan of trials: a study of its own, whose runs are scored on validation alone."""
    full = replace(find_inputs(trial_study(study, trials)), notes=(), lengths=())
    settings = run_settings(full, trial=True)
    plan_hash = hash_of({"trials": [[arm, seed, found.as_json()] for (arm, seed), found in settings.items()]})
    alone: dict[str, str | None] = dict.fromkeys(full.study.arms)
    return Plan(
        **vars(full),
        runs=plan_runs(full, settings, plan_hash),
        hash=plan_hash,
        arms=arm_settings(full.study, full.models),
        controls=alone,
        primaries=alone,
        trials={trial.name: trial for trial in trials},
    )


@dataclass(frozen=True)
class TuningCost:
    """What the trials of a study will take, borrowed ones not counted.

    Args:
        trials: of each arm.
        runs: of all trials.
        steps: optimizer steps of all trials of each arm.
    """

    trials: dict[str, int]
    runs: int
    steps: dict[str, int]


def find_tuning_cost(plan: Plan) -> TuningCost | None:
    """What the trials of a plan's study will take; None where it has none. Borrowing adds at most one trial per rival."""
    arms = {name: arm for name, arm in plan.study.arms.items() if name != plan.copy}
    study = trained_study(plan.study.model_copy(update={"arms": arms}))
    if study.tune is None:
        return None
    trials = make_trial_plan(study, find_trials(study, plan.task.metric, {}))
    steps = Counter[str]()
    for run in trials.runs:
        steps[trials.trials[run.arm].arm] += run.steps
    return TuningCost(dict(Counter(trial.arm for trial in trials.trials.values())), len(trials.runs), dict(steps))
