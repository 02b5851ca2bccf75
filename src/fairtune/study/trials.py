"""The trials of a tuned study: which there are, given what the ones before scored, and which settings each arm ends with.

`find_trials` is a function of the study and the scores alone, so that whoever is killed and comes back finds the same trials and
makes the same choice.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.ledger.trials import trials_name
from fairtune.methods.config import MethodUse
from fairtune.settings.metrics import METRICS
from fairtune.settings.tune import ADAPTIVE, Point, Tune
from fairtune.settings.values import LONGEST_NAME
from fairtune.study.audit import is_tuned
from fairtune.study.schema import Arm, Study
from fairtune.study.search_space import draw_points, with_field

DRAWN, BORROWED = "drawn", "borrowed"
Scores = Mapping[str, float | None]
"""Of trials that have been run, by name: the mean validation score; None where a run of it failed."""


@dataclass(frozen=True)
class Trial:
    """Settings that an arm tries.

    Args:
        point: the values of tuned fields.
        budget: fields of `train` that trials have instead.
        share: of the budget, below 1 in the early rounds of successive halving.
        origin: drawn, or borrowed from another arm.
    """

    arm: str
    point: Point
    budget: dict[str, Any]
    share: float = 1.0
    origin: str = DRAWN

    @property
    def name(self) -> str:
        """Of its arm in the study of trials, made of what it tries: other settings are another folder."""
        text = json.dumps([self.arm, self.point, self.budget], sort_keys=True, default=str)
        end = f"+{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return self.arm[: LONGEST_NAME - len(end)] + end

    def as_json(self) -> dict[str, Any]:
        return {"arm": self.arm, "point": self.point, "share": self.share, "origin": self.origin}


@dataclass(frozen=True)
class ChosenSettings:
    """The settings that an arm ends with, and the trial that they were."""

    trial: str
    point: Point


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning, as the plan of the reported runs has it.

    Args:
        plan: hash of the last plan of trials.
        choices: by arm.
        trials: how many each arm had.
        runs: of all trials.
    """

    plan: str
    choices: dict[str, ChosenSettings]
    trials: dict[str, int]
    runs: int

    def as_json(self, tune: Tune) -> dict[str, Any]:
        """With what it was chosen from."""
        return {
            **tune.model_dump(mode="json", exclude={"budget"}),
            "budget": tune.budget.model_dump(mode="json", exclude_unset=True),
            "plan": self.plan,
            "fields": list(tune.shared),
            "runs": self.runs,
            "arms": {
                arm: {
                    "trial": choice.trial,
                    "chosen": choice.point,
                    "trials": self.trials[arm],
                    "own": [name for name in choice.point if "." in name],
                }
                for arm, choice in self.choices.items()
            },
        }


def acting_methods(uses: Sequence[MethodUse]) -> list[str]:
    """The methods whose own fields are tuned: one that only looks on is a control, and must stay what it is."""
    return [use.name for use in uses if not use.config.idle]


def tuned_arms(study: Study) -> list[str]:
    """The arms that are tuned: all that are trained; simple baselines choose for themselves, on validation too."""
    return [arm for arm in study.arms if is_tuned(study.learner(arm))]


def find_trials(study: Study, metric: str, scores: Scores) -> list[Trial]:
    """The trials of all arms that are known by now: once all of them have scores, ask again, until no more come."""
    found = {arm: _arm_trials(study, arm, metric, scores) for arm in tuned_arms(study)}
    assert study.tune is not None, "a study that is tuned"
    complete = all(trial.name in scores for trials in found.values() for trial in trials)
    if study.tune.borrow and complete:
        best = {arm: best_trial(trials, metric, scores) for arm, trials in found.items()}
        for arm, trials in found.items():
            found[arm] = [*trials, *_borrowed(study, arm, best, trials)]
    return [trial for trials in found.values() for trial in trials]


def best_trial(trials: Sequence[Trial], metric: str, scores: Scores) -> Trial | None:
    """The best trial of an arm among those with the whole budget; the earlier one where two are alike."""
    whole = [trial for trial in trials if trial.share == 1 and scores.get(trial.name) is not None]
    return min(whole, key=lambda trial: _rank(scores[trial.name], metric), default=None)


def _rank(score: float | None, metric: str) -> float:
    """The lower, the better; a failed trial comes last."""
    if score is None or math.isnan(score):
        return math.inf
    return score if METRICS[metric].lower_is_better else -score


def _arm_trials(study: Study, arm: str, metric: str, scores: Scores) -> list[Trial]:
    tune = study.tune
    assert tune is not None, "a study that is tuned"
    methods = acting_methods(study.methods(arm))
    if tune.sampler in ADAPTIVE:
        from fairtune.study.optuna_sampler import propose_points

        budget = _budget(study, arm, 1)
        proposed = propose_points(
            tune, methods, lambda point: scores[Trial(arm, point, budget).name], METRICS[metric].lower_is_better
        )
        return [Trial(arm, point, budget) for point in proposed]
    points = draw_points(tune, methods)
    found: list[Trial] = []
    for share, count in _rounds(tune, len(points)):
        if found:
            before = [trial for trial in found if trial.share == found[-1].share]
            if any(trial.name not in scores for trial in before):
                break
            ranked = sorted(before, key=lambda trial: _rank(scores[trial.name], metric))[:count]
            points = [trial.point for trial in before if trial in ranked]
        found += [Trial(arm, point, _budget(study, arm, share), share) for point in points]
    return found


def _rounds(tune: Tune, points: int) -> list[tuple[float, int]]:
    """The share of the budget of each round, and how many trials it has."""
    factor = tune.halving
    if factor is None or points < factor:
        return [(1.0, points)]
    rounds = int(math.log(points, factor) + 1e-9) + 1
    return [(float(factor) ** (place + 1 - rounds), math.ceil(points / factor**place)) for place in range(rounds)]


def count_trials(study: Study) -> dict[str, tuple[int, float]]:
    """How many trials each arm will have, borrowed ones not counted, and how many whole budgets they are."""
    assert study.tune is not None, "a study that is tuned"
    found = {}
    for arm in tuned_arms(study):
        methods = acting_methods(study.methods(arm))
        points = study.tune.trials if study.tune.sampler in ADAPTIVE else len(draw_points(study.tune, methods))
        rounds = _rounds(study.tune, points)
        found[arm] = sum(count for _, count in rounds), sum(share * count for share, count in rounds)
    return found


def _borrowed(study: Study, arm: str, best: Mapping[str, Trial | None], known: Sequence[Trial]) -> list[Trial]:
    """The best settings of the other arms that this one has not tried; a method's own fields stay as its own best has them."""
    tune, own = study.tune, best[arm]
    assert tune is not None, "a study that is tuned"
    tried = [trial.point for trial in known if trial.share == 1]
    found: list[Trial] = []
    for rival, trial in best.items():
        if rival == arm or trial is None:
            continue
        shared = {name: value for name, value in trial.point.items() if name in tune.shared}
        point = {**(own.point if own else {}), **shared}
        if point not in tried:
            tried.append(point)
            found.append(Trial(arm, point, _budget(study, arm, 1), 1.0, BORROWED))
    return found


def _budget(study: Study, arm: str, share: float) -> dict[str, Any]:
    """What a trial trains with instead of the arm's own: never more examples than are reported on, and a part in early rounds."""
    assert study.tune is not None, "a study that is tuned"
    found, own = dict(study.tune.cheaper), study.settings(arm)
    if found.get("examples") is not None:
        found["examples"] = _fewer(found["examples"], own.examples)
    if "epochs" in found and "steps" not in found:
        found["steps"] = None  # an arm's own steps would replace them
    if share == 1:
        return found
    steps, examples = found.get("steps", own.steps), found.get("examples")
    if steps is not None:
        return {**found, "steps": max(1, round(steps * share))}
    if isinstance(examples, int):
        return {**found, "examples": max(2, round(examples * share))}
    return {**found, "epochs": found.get("epochs", own.epochs) * share, "steps": None}


def _fewer(wanted: Any, own: Any) -> Any:
    """Examples of a trial, of which there are no more than of a reported run; a number in all, or of each class."""
    if isinstance(wanted, int):
        return min(wanted, own) if isinstance(own, int) else wanted
    least = wanted["per_class"] if isinstance(wanted, dict) else wanted.per_class
    most = getattr(own, "per_class", None)
    return {**(wanted if isinstance(wanted, dict) else wanted.model_dump()), "per_class": min(least, most or least)}


def arm_with(arm: Any, point: Mapping[str, Any], budget: Mapping[str, Any] | None = None) -> Any:
    """An arm with the settings of a point, and of a budget."""
    methods = list(arm.methods)
    for name, value in point.items():
        method, dot, field = name.partition(".")
        if dot:
            place = next(place for place, use in enumerate(methods) if use.name == method)
            methods[place] = with_field(methods[place], field, value)
    settings = {name: value for name, value in point.items() if "." not in name}
    given = arm.model_dump(exclude={"methods", "preset"}, exclude_unset=True)
    return Arm.model_validate({**given, **settings, **(budget or {}), "methods": methods})


def trial_study(study: Study, trials: Sequence[Trial]) -> Study:
    """The study whose arms are trials, with seeds of its own."""
    assert study.tune is not None, "a study that is tuned"
    arms = {trial.name: arm_with(study.arms[trial.arm], trial.point, trial.budget) for trial in trials}
    first = next(iter(arms))
    return study.model_copy(
        update={
            "study": trials_name(study.study),
            "arms": arms,
            "seeds": study.tune.seeds,
            "compare": study.compare.model_copy(update={"to": first}),
            "execution": study.execution.model_copy(update={"save_model": False}),
            "prompts": None,
            "controls": False,
            "aa": False,
            "time": False,
            "tune": None,
        }
    )


def tuned_study(study: Study, choices: Mapping[str, ChosenSettings]) -> Study:
    """The study with the chosen settings in its arms."""
    arms = {name: arm_with(arm, choices[name].point) if name in choices else arm for name, arm in study.arms.items()}
    return study.model_copy(update={"arms": arms})
