"""The trials of a tuned study: which settings each arm tries, and which it ends with.

Points are drawn once, from the space itself, and shared by all arms: no arm gets luckier ones, and no one can draw again. Trials
follow from the study and the scores alone, so a process that is killed and comes back makes the same choice.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.ledger.trials import trials_name
from fairtune.settings.metrics import METRICS
from fairtune.settings.tune import Point, Range, Space, Tune, Values, space_size
from fairtune.settings.values import LONGEST_NAME
from fairtune.study.controls import is_tuned, with_arms
from fairtune.study.schema import Arm, Study
from fairtune.study.study_checks import with_fields

DRAWN, BORROWED = "drawn", "borrowed"
Scores = Mapping[str, float | None]
"""Of trials that have been run, by name: the mean validation score; None where a run of it failed."""


@dataclass(frozen=True)
class Trial:
    """Settings that an arm tries: the values of tuned fields, and fields of `train` that trials have instead."""

    arm: str
    point: Point
    budget: dict[str, Any]
    origin: str = DRAWN

    @property
    def name(self) -> str:
        """Of its arm in the study of trials, made of what it tries: other settings are another folder."""
        text = json.dumps([self.arm, self.point, self.budget], sort_keys=True, default=str)
        end = f"+{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return self.arm[: LONGEST_NAME - len(end)] + end

    def as_json(self) -> dict[str, Any]:
        return {"arm": self.arm, "point": self.point, "origin": self.origin}


@dataclass(frozen=True)
class Tuned:
    """The outcome of tuning: the hash of the plan of trials, the best of each arm, how many it had, and the runs of all."""

    plan: str
    choices: dict[str, Trial]
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
                    "trial": best.name,
                    "chosen": best.point,
                    "trials": self.trials[arm],
                    "own": [name for name in best.point if "." in name],
                }
                for arm, best in self.choices.items()
            },
        }


def find_trials(study: Study, metric: str, scores: Scores) -> list[Trial]:
    """The trials that are known by now: once all of them have scores, ask again, since arms may borrow from each other."""
    tune = study.tune
    assert tune is not None, "a study that is tuned"
    found: dict[str, list[Trial]] = {}
    for arm in (arm for arm in study.arms if is_tuned(study.learner(arm))):
        acting = [use.name for use in study.methods(arm) if not use.config.idle]  # an idle control stays what it is
        budget = _budget(study, arm, tune)
        found[arm] = [Trial(arm, point, budget) for point in draw_points(tune, acting)]
    if tune.borrow and all(trial.name in scores for trials in found.values() for trial in trials):
        best = {arm: best_trial(trials, metric, scores) for arm, trials in found.items()}
        for arm, trials in found.items():
            own = best[arm]
            for rival in (trial for other, trial in best.items() if other != arm and trial is not None):
                shared = {name: value for name, value in rival.point.items() if name in tune.shared}
                point = {**(own.point if own else {}), **shared}  # a method's own fields stay as its own best has them
                if all(point != trial.point for trial in trials):
                    trials.append(Trial(arm, point, trials[0].budget, BORROWED))
    return [trial for trials in found.values() for trial in trials]


def best_trial(trials: Sequence[Trial], metric: str, scores: Scores) -> Trial | None:
    """The best trial of an arm that did not fail; the earlier one where two are alike."""
    ranked = [(trial, score) for trial in trials if (score := scores.get(trial.name)) is not None]
    sign = 1 if METRICS[metric].lower_is_better else -1
    best = min(ranked, key=lambda found: math.inf if math.isnan(found[1]) else sign * found[1], default=None)
    return best and best[0]


def _budget(study: Study, arm: str, tune: Tune) -> dict[str, Any]:
    """What a trial trains with instead of the arm's own settings: never more examples than reported runs have."""
    own: Any = study.settings(arm).examples
    found = dict(tune.cheaper)
    wanted = found.get("examples")
    if isinstance(wanted, dict) and own is not None:
        found["examples"] = {**wanted, "per_class": min(wanted["per_class"], own.per_class)}
    elif wanted is not None and own is not None:
        found["examples"] = min(wanted, own)
    if "epochs" in found and "steps" not in found:
        found["steps"] = None  # an arm's own steps would replace them
    return found


def draw_points(tune: Tune, methods: Sequence[str]) -> list[Point]:
    """The points that an arm with these methods tries: shared fields like every arm, with its methods' own fields added.

    Every arm gets the same number of them, unless nothing but methods' own fields is tuned, or a whole grid.
    """
    shared, own = _draw(tune.shared, tune.trials, _seed(tune, "shared")), tune.own(methods)
    if not own:
        return shared
    if not tune.shared or tune.sampler == "grid":
        return _draw({**tune.shared, **own}, tune.trials, _seed(tune, "own", sorted(own)))
    values = {name: _spread(part, len(shared), _seed(tune, "own", name)) for name, part in own.items()}
    return [{**point, **{name: values[name][place] for name in own}} for place, point in enumerate(shared)]


def _draw(space: Space, count: int, seed: str) -> list[Point]:
    """Different points, or all where a space has no more; the order in which the space was written changes nothing."""
    generator, size = random.Random(seed), space_size(space)
    values = {name: _ordered(space[name]) for name in sorted(space)}
    if size is None:
        drawn = [{name: _at(own, generator.random()) for name, own in values.items()} for _ in range(count)]
    else:
        grid = list(itertools.product(*values.values()))
        chosen = range(size) if size <= count else sorted(generator.sample(range(size), count))
        drawn = [dict(zip(values, grid[place], strict=True)) for place in chosen]
    return [{name: point[name] for name in space} for point in drawn]


def _spread(values: Values | Range, count: int, seed: str) -> list[Any]:
    """Values that occur about equally often, shuffled."""
    generator, values = random.Random(seed), _ordered(values)
    found: list[Any]
    if isinstance(values, Range):
        found = [values.at((place + generator.random()) / count) for place in range(count)]
    else:
        found = [values[place % len(values)] for place in range(count)]
    generator.shuffle(found)
    return found


def _ordered(values: Values | Range) -> Any:
    """Values in an order of their own; a range as it is."""
    return values if isinstance(values, Range) else sorted(values, key=lambda value: (str(type(value)), value or 0))


def _at(values: Any, share: float) -> Any:
    """The value at a share of the way through."""
    return values.at(share) if isinstance(values, Range) else values[int(share * len(values))]


def _seed(tune: Tune, *words: Any) -> str:
    """What draws depend on: the space and the number of trials, nothing that could be tried again at will."""
    space = {
        name: values.model_dump(mode="json") if isinstance(values, Range) else _ordered(values)
        for name, values in tune.space.items()
    }
    return hashlib.sha256(json.dumps([space, tune.trials, *words], sort_keys=True).encode()).hexdigest()


def tuned_study(study: Study, choices: Mapping[str, Trial]) -> Study:
    """The study with the chosen settings in its arms."""
    return with_arms(study, {name: _tried(study.arms[name], trial.point) for name, trial in choices.items()})


def _tried(arm: Any, settings: Mapping[str, Any]) -> Any:
    """An arm with other settings, of its training and of its methods."""
    plain = {name: value for name, value in settings.items() if "." not in name}
    methods = []
    for use in arm.methods:
        begin = f"{use.name}."
        own = {name.removeprefix(begin): value for name, value in settings.items() if name.startswith(begin)}
        methods.append(with_fields(use, own))
    given = arm.model_dump(exclude={"methods", "preset"}, exclude_unset=True)
    return Arm.model_validate({**given, **plain, "methods": methods})


def trial_study(study: Study, trials: Sequence[Trial]) -> Study:
    """The study whose arms are trials, with seeds of its own."""
    assert study.tune is not None, "a study that is tuned"
    arms = {trial.name: _tried(study.arms[trial.arm], {**trial.point, **trial.budget}) for trial in trials}
    left_out = ("prompts", "claims", "notes", "controls", "aa", "time", "tune")
    changes = {
        "study": trials_name(study.study),
        "arms": arms,
        "seeds": study.tune.seeds,
        "compare": study.compare.model_copy(update={"to": next(iter(arms))}),
        "execution": study.execution.model_copy(update={"save_model": False}),
    }
    return study.model_copy(update={**{name: Study.model_fields[name].default for name in left_out}, **changes})
