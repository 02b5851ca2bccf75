"""The plan: a study expanded into runs, in the order they will happen, hashed before the first of them."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from fairtune import __version__
from fairtune.errors import FairtuneError
from fairtune.models.sources import ModelSource, find_model
from fairtune.study.audit import Difference, differences
from fairtune.study.auto_length import resolve_lengths
from fairtune.study.schema import Study, Train
from fairtune.tasks import TaskFacts, load_task
from fairtune.tasks.contamination import check_contamination
from fairtune.tasks.corpora import is_text

PROTOCOL = 2
"""Raised whenever the same settings would train differently; part of every signature."""

_UNUSED = {"tokens"}
"""Settings that no run of this version has: text for language models is not trained on yet."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan.

    Args:
        position: its place in the order, from 0.
        block: the seed's place; runs of one block are compared with each other.
        settings: everything that decides the result, and nothing else.
        key: hash of the settings; a finished run with the same key is not run again.
    """

    position: int
    block: int
    arm: str
    seed: int
    settings: dict[str, Any]
    key: str
    signature: str
    steps: int

    @property
    def name(self) -> str:
        return f"{self.arm}/seed-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """A study as it will be run.

    Args:
        notes: what a reader of its results must be told.
        lengths: what `max_length: auto` became, and why.
    """

    study: Study
    task: TaskFacts
    model: ModelSource
    runs: tuple[PlannedRun, ...]
    differences: tuple[Difference, ...]
    hash: str
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The plan as data: what `fairtune plan --json` prints and the ledger keeps."""
        return {
            "fairtune": __version__,
            "protocol": PROTOCOL,
            "plan": self.hash,
            "study": self.study.study,
            "task": asdict(self.task),
            "model": self.model.as_json(),
            "order": self.study.order,
            "seeds": list(self.study.seeds),
            "arms": {arm: self._arm_json(arm) for arm in self.study.arms},
            "compare": self.study.compare.model_dump(mode="json"),
            "execution": self.study.execution.model_dump(mode="json"),
            "runs": [asdict(run) for run in self.runs],
            "differences": [{**asdict(d), "text": str(d)} for d in self.differences],
            "notes": list(self.notes),
            "lengths": list(self.lengths),
        }

    def _arm_json(self, arm: str) -> dict[str, Any]:
        return {
            "methods": [use.as_json() for use in self.study.methods(arm)],
            "train": self.study.settings(arm).model_dump(mode="json"),
        }


def make_plan(study: Study) -> Plan:
    """Expand a study. Reads the task's data and finds the model, so that what is wrong with them is known before run 1."""
    _refuse_text(study)
    data = load_task(**study.data())
    notes = check_contamination(data, study.train_on, study.allow_contamination)
    task = data.facts()
    study, model, lengths = resolve_lengths(study, data, find_model(study.model))
    for arm in study.arms:
        if study.settings(arm).tokens is not None:
            raise FairtuneError(
                f"arm '{arm}': tokens counts the training text of language models; for classification use examples."
            )
        longest = study.settings(arm).longest
        if model.positions is not None and longest > model.positions:
            raise FairtuneError(
                f"arm '{arm}': max_length is {longest}, but model '{model.name}' has {model.positions} positions; lower max_length."
            )
    keys = {(arm, seed): _settings(study, arm, seed, task, model) for arm in study.arms for seed in study.seeds}
    plan_hash = _hash(
        {
            "runs": [[arm, seed, settings] for (arm, seed), settings in keys.items()],
            "order": study.order,
            "compare": study.compare.model_dump(mode="json"),
        }
    )
    runs = []
    for position, (block, arm, seed) in enumerate(_ordered(study, plan_hash)):
        settings = keys[arm, seed]
        key = _hash(settings)
        signature = (
            f"fairtune:{__version__}|protocol:{PROTOCOL}|task:{task.name}@{task.fingerprint[:8]}"
            f"|model:{model.name}@{model.identity[:8]}|arm:{arm}|seed:{seed}|run:{key}|plan:{plan_hash}"
        )
        steps = total_steps(study.settings(arm), task.rows["train"])
        runs.append(PlannedRun(position, block, arm, seed, settings, key, signature, steps))
    return Plan(study, task, model, tuple(runs), differences(study), plan_hash, notes, lengths)


def _refuse_text(study: Study) -> None:
    if is_text(study.task):
        name = study.task if isinstance(study.task, str) else study.task.name
        raise FairtuneError(
            f"task '{name}' is text for language models, and training those comes with the next version; "
            "`fairtune data prepare FILE` makes the token blocks of such a study already."
        )


def total_steps(train: Train, examples: int) -> int:
    """Optimizer steps of a run over so many training examples."""
    if train.steps is not None:
        return train.steps
    return max(1, round(train.epochs * steps_per_epoch(train, examples)))


def steps_per_epoch(train: Train, examples: int) -> int:
    used = min(examples, train.examples or examples)
    return math.ceil(math.ceil(used / train.batch_size) / train.accumulate)


def _settings(study: Study, arm: str, seed: int, task: TaskFacts, model: ModelSource) -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "task": {"name": task.name, "fingerprint": task.fingerprint, "metric": task.metric},
        "model": {"name": model.name, "identity": model.identity},
        "train": study.settings(arm).model_dump(mode="json", exclude=_UNUSED),
        "methods": [use.as_json() for use in study.methods(arm)],
        "seed": seed,
    }


def _ordered(study: Study, plan_hash: str) -> Iterable[tuple[int, str, int]]:
    arms, seeds = list(study.arms), list(enumerate(study.seeds))
    if study.order == "sequential":
        return [(block, arm, seed) for arm in arms for block, seed in seeds]
    if study.order == "random":
        runs = [(block, arm, seed) for block, seed in seeds for arm in arms]
        random.Random(plan_hash).shuffle(runs)
        return runs
    return [(block, arm, seed) for block, seed in seeds for arm in (arms if block % 2 == 0 else reversed(arms))]


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
