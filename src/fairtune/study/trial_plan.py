"""The plan of a study's trials, which is that of a study of its own, and what it will cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtune.study.added_arms import missing_controls, with_controls
from fairtune.study.audit import arm_settings
from fairtune.study.inputs import find_inputs
from fairtune.study.plan import Plan, all_plugins, plan_runs, run_settings
from fairtune.study.run_spec import hash_of
from fairtune.study.schema import Study
from fairtune.study.trials import Trial, count_trials, find_trials, trial_study


def trained_study(study: Study) -> Study:
    """The study with the controls that it asks for: those arms are tuned like all others."""
    return with_controls(study, missing_controls(study) if study.controls else {})


def make_trial_plan(study: Study, trials: Sequence[Trial]) -> Plan:
    """The plan of trials: a study of its own, whose runs are scored on validation alone."""
    inputs = find_inputs(trial_study(study, trials))
    alone: dict[str, str | None] = dict.fromkeys(inputs.study.arms)
    settings = run_settings(inputs, trial=True)
    plan_hash = hash_of({"trials": [[arm, seed, found.as_json()] for (arm, seed), found in settings.items()]})
    return Plan(
        inputs.study,
        inputs.task,
        inputs.models,
        plan_runs(inputs, settings, plan_hash),
        arm_settings(inputs.study, inputs.models),
        (),
        alone,
        plan_hash,
        tokenizer=inputs.tokenizer,
        plugins=all_plugins(inputs.study),
        primaries=alone,
        trials={trial.name: trial for trial in trials},
    )


@dataclass(frozen=True)
class TuningCost:
    """What the trials of a study will take.

    Args:
        trials: of each arm, borrowed ones not counted.
        runs: of all trials.
        steps: optimizer steps of all trials of each arm.
    """

    trials: dict[str, int]
    runs: int
    steps: dict[str, int]


def find_tuning_cost(plan: Plan) -> TuningCost | None:
    """What the trials of a plan's study will take; None where it has none. Borrowed trials, at most one per rival, come on top."""
    arms = {name: arm for name, arm in plan.study.arms.items() if name != plan.copy}
    study = trained_study(plan.study.model_copy(update={"arms": arms}))
    if study.tune is None:
        return None
    counts = count_trials(study)
    first = make_trial_plan(study, find_trials(study, plan.task.metric, {}))
    steps: dict[str, int] = {}
    for arm, (_, budgets) in counts.items():
        trials = {name: trial for name, trial in first.trials.items() if trial.arm == arm}
        spent = sum(run.steps for run in first.runs if run.arm in trials)
        steps[arm] = round(spent * budgets / sum(trial.share for trial in trials.values()))
    trials_of = {arm: count for arm, (count, _) in counts.items()}
    return TuningCost(trials_of, sum(trials_of.values()) * len(study.tune.seeds), steps)
