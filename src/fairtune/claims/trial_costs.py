"""What it would cost to try a claim: runs, optimizer steps and tokens of a study, and a rough bound of core and GPU hours.

All of it follows from the study file and the published sizes of data sets, so that it can be said where neither data nor model is.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairtune.claims.published import ClaimTrial
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.settings.model import PresetModel
from fairtune.settings.sections import Train
from fairtune.study.compute import LARGE, Compute, arm_operations, hours_text
from fairtune.study.schema import Study
from fairtune.study.source import find_shipped
from fairtune.study.study_file import load_study
from fairtune.study.trials import find_trials
from fairtune.tasks.definitions import ALIASES, CATALOGUE

GPU = "A100"
"""The one that sentences tell of; the JSON has all."""
SIZES = ("examples", "tokens", "epochs", "steps", "batch_size")
"""Settings that tell one size of a study from another."""


@dataclass(frozen=True)
class TrialCost:
    """What a trial takes.

    Args:
        runs: that train, those of tuning included; simple baselines take seconds and are not counted.
        steps: optimizer steps of all of them; None where the size of the data is not known here.
        tokens: that go through training at the most: as if every text had `max_length` tokens.
        compute: at the most; None where a model's size is not known here.
    """

    runs: int
    steps: int | None
    tokens: int | None
    compute: Compute | None

    def __str__(self) -> str:
        found = f"{self.runs} training runs"
        if self.steps is not None and self.tokens is not None:
            found += f", {self.steps:,} optimizer steps, at most {_short(self.tokens)} tokens"
        if self.compute is not None:
            cores, hours = self.compute.core_hours, self.compute.gpu_hours[GPU]
            gpu = (
                f"; {GPU}: {hours_text(hours['fp32'])} in fp32, {hours_text(hours['16-bit'])} in bf16"
                if cores >= LARGE
                else ""
            )
            found += f" (very roughly up to {hours_text(cores)} of one core{gpu})"
        return found

    def as_json(self) -> dict[str, Any]:
        compute = None if self.compute is None else self.compute.as_json()
        return {"runs": self.runs, "steps": self.steps, "tokens": self.tokens, "core_hours": None, **(compute or {})}


def load_trial(trial: ClaimTrial) -> Study:
    """The study of a trial.

    Raises:
        FairtuneError: its file is gone, or lacks the profile or an arm that the trial names.
    """
    if (file := find_shipped(trial.file)) is None:
        raise FairtuneError(f"{trial.file}: no such file comes with fairtune.")
    study = _read(file, trial.profile, file.stat().st_mtime_ns)
    for arm in (*trial.arms, *(arm for claim in trial.claims for arm in claim.arms)):
        if arm not in study.arms:
            arms = list(study.arms)
            raise FairtuneError(
                f"{trial.file}: a claim is about the arm '{arm}', which it does not have; its arms: {one_of(arms)}."
                f"{nearest(arm, arms)}"
            )
    return study


@lru_cache(maxsize=128)
def _read(file: Path, profile: str | None, _changed: int) -> Study:
    """A study file, which many claims share; read anew when it has changed."""
    return load_study(file, profile=profile)


def is_of_trial(plan: Mapping[str, Any], study: Study, arms: Collection[str]) -> bool:
    """Whether a plan on record is that of a trial, and not of another size or with other methods under the same name.

    Args:
        arms: that are asked about, whose methods must be those of today's study file.
    """
    for arm in (arm for arm in arms if arm in study.arms and arm in plan["arms"]):
        today = json.loads(json.dumps([use.as_json() for use in study.methods(arm)]))
        if plan["arms"][arm].get("methods", today) != today:
            return False
    model = study.model
    name = model.preset if isinstance(model, PresetModel) else str(model).partition("@")[0]
    if not str(plan["model"].get("name")).startswith(name):
        return False
    for arm in (arm for arm in study.arms if arm in plan["arms"] and study.learner(arm) is None):
        own, recorded = study.settings(arm).model_dump(mode="json"), plan["arms"][arm]["train"]
        if any(own.get(field) != recorded.get(field) for field in SIZES if field in recorded):
            return False
    return True


def find_cost(trial: ClaimTrial) -> TrialCost:
    """What a trial takes, by its study file.

    Raises:
        FairtuneError: as `load_trial`.
    """
    study = load_trial(trial)
    arms = [arm for arm in study.arms if study.learner(arm) is None and (not trial.arms or arm in trial.arms)]
    trials = Counter(trial.arm for trial in find_trials(study, "", {})) if study.tune is not None else {}
    rows = _training_rows(study)
    runs, steps, tokens, operations = 0, 0, 0, 0.0
    for arm in arms:
        train = study.settings(arm)
        counts = [(train, len(study.seeds))]
        runs += len(study.seeds)
        if study.tune is not None and arm in trials:
            tried = trials[arm] * len(study.tune.seeds)
            runs += tried
            cheaper = {name: value for name, value in study.tune.cheaper.items() if value is not None}
            counts.append((train.model_copy(update=cheaper), tried))
        for settings, times in counts:
            own = _steps(settings, rows)
            length = settings.max_length if isinstance(settings.max_length, int) else None
            if own is None or length is None:
                return TrialCost(_all_runs(study, arms, trials), None, None, None)
            read = own * settings.batch_size * settings.accumulate * length * times
            steps, tokens = steps + round(own * times), tokens + round(read)
            operations += arm_operations(study, arm, settings, own * times)
    return TrialCost(runs, steps, tokens, Compute(operations) if math.isfinite(operations) else None)


def _all_runs(study: Study, arms: Sequence[str], trials: Mapping[str, int]) -> int:
    tuning = len(study.tune.seeds) if study.tune is not None else 0
    return sum(len(study.seeds) + trials.get(arm, 0) * tuning for arm in arms)


def _steps(train: Train, rows: int | None) -> int | None:
    if train.steps is not None:
        return train.steps
    known = rows if rows is not None else train.examples if isinstance(train.examples, int) else None
    return None if known is None else train.total_steps(known)


def _training_rows(study: Study) -> int | None:
    """Training examples of a task of the catalogue, as published; None where they are not known."""
    name = ALIASES.get(str(study.task), str(study.task))
    if name not in CATALOGUE:
        return None
    data, split = CATALOGUE[name].places()["train"]
    return round(data.rows[split] * (1 - sum(CATALOGUE[name].shares.values())))


def _short(count: int) -> str:
    for unit, size in (("billion", 10**9), ("million", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,}"
