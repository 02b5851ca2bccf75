"""How much arithmetic a study is, and how long that takes at a stated rate: hours of one core and of two common GPUs.

It follows from the study and the sizes of its models, so that it can be said before anything is measured. It is a bound: every text
counts as if it had `max_length` tokens, while a batch is only padded to its own longest text. Scoring is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fairtune.core.numbers import plural
from fairtune.models.operations import model_sizes, operations_per_token
from fairtune.settings.model import TrainedTokenizer
from fairtune.settings.sections import Train
from fairtune.study.plan import Plan, TuningCost
from fairtune.study.schema import Study
from fairtune.tasks.corpora import is_text

CORE_SPEED = 60e9
"""Operations per second of one core in whole training steps: a step of MiniLM with 443 tokens took 236 ms on two cores."""
GPUS = {"RTX 4090": {"fp32": 82.6e12, "16-bit": 165e12}, "A100": {"fp32": 19.5e12, "16-bit": 312e12}}
"""Peak operations per second by NVIDIA's data sheets: in fp32 without TF32, and in bf16 with sums in fp32, dense."""
UTILISATION = 0.3
"""The share of the peak that training is assumed to reach. Small models and short texts reach less."""
LARGE = 24
"""Core-hours from which on a GPU is worth a word."""


@dataclass(frozen=True)
class Compute:
    """Operations of all training steps of a study, at most."""

    operations: float

    @property
    def core_hours(self) -> float:
        return self.operations / CORE_SPEED / 3600

    @property
    def gpu_hours(self) -> dict[str, dict[str, float]]:
        """By GPU and precision, estimated."""
        speed = 3600 * UTILISATION
        return {name: {how: self.operations / (speed * peak) for how, peak in by.items()} for name, by in GPUS.items()}

    def __str__(self) -> str:
        """One or two lines."""
        found = f"at most {self.operations:.2g} operations, if every text had max_length tokens"
        found += f": about {hours_text(self.core_hours)} of one core"
        if self.core_hours < LARGE:
            return found
        gpus = [f"{name} {' / '.join(map(hours_text, each.values()))}" for name, each in self.gpu_hours.items()]
        share = f"estimated at {100 * UTILISATION:.0f} % of the peak rates"
        return f"{found}\n  On one GPU in fp32 / 16 bits, {share}: {', '.join(gpus)}"

    def as_json(self) -> dict[str, Any]:
        hours = {"core_hours": self.core_hours, "gpu_hours": self.gpu_hours}
        return {"operations": self.operations, **hours, "gpu_utilisation": UTILISATION}


def hours_text(hours: float) -> str:
    """In minutes, hours or days."""
    if hours > 1000:
        return f"{hours / 24:,.0f} days"
    return plural(round(hours), "hour") if hours >= 1 else plural(max(1, round(60 * hours)), "minute")


def arm_operations(study: Study, arm: str, train: Train, steps: float, folder: str | None = None) -> float:
    """Of so many steps of an arm with these settings, at most; not a number where its model's sizes are not known."""
    sizes, learner = model_sizes(study.model_of(arm), folder), study.learner(arm)
    words = study.tokenizer.train if isinstance(study.tokenizer, TrainedTokenizer) else None
    token = operations_per_token(sizes, train.longest, train.batch_size, is_text(study.task), words)
    if token is None:
        return math.nan
    factors = [use.config.step_factor for use in study.methods(arm)]
    factor = math.prod(factors, start=learner.step_factor if learner else 1)
    passes = 4 / 3 if train.gradient_checkpointing else 1  # a second forward pass
    return steps * train.batch_size * train.accumulate * train.longest * token * factor * passes


def plan_compute(plan: Plan, tuning: TuningCost | None) -> Compute | None:
    """Of all runs of a plan, its trials included; None where the sizes of a model are not known."""
    study, total = plan.study, 0.0
    for arm in plan.trained:
        train, folder = study.settings(arm), plan.models[arm].folder
        total += arm_operations(study, arm, train, sum(run.steps for run in plan.runs if run.arm == arm), folder)
        if tuning is not None and study.tune is not None and arm in tuning.steps:
            given = {name: value for name, value in study.tune.cheaper.items() if value is not None}
            cheaper = train.model_copy(update={"max_length": train.longest, **given})
            total += arm_operations(study, arm, cheaper, tuning.steps[arm], folder)
    return Compute(total) if math.isfinite(total) else None
