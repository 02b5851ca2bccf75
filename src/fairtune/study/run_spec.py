"""A run, fully specified: made once by the plan, written as the run's `plan.json`, checked once by the worker that performs it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from fairtune.core.plugins import Plugin
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.models.sources import ModelSource
from fairtune.models.tokenizers import TokenizerSource
from fairtune.settings.learners import LEARNERS
from fairtune.settings.sections import Train
from fairtune.settings.values import LANGUAGE_MODEL


class Frozen(BaseModel):
    """Data that never changes. Fields that were not set are left out of its JSON, and so out of hashes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)


class Identity(Frozen):
    """Of a model or a tokenizer, wherever its files are."""

    name: str
    identity: str


class PlannedTask(Frozen):
    """Which data a run trains on, and the metric that selects its checkpoint."""

    name: str
    fingerprint: str
    metric: str
    kind: str | None = None


class RunSettings(Frozen):
    """Everything that decides the result of a run, and nothing else.

    Args:
        methods: with every setting stated.
        sample: the seed that draws the training examples, where each seed has its own.
        trial: whether it is scored on validation alone.
    """

    protocol: int
    task: PlannedTask
    model: Identity | None = None
    tokenizer: Identity | None = None
    train: Train
    methods: tuple[dict[str, dict[str, Any]], ...] = ()
    learner: dict[str, Any] | None = None
    plugins: tuple[dict[str, Any], ...] = ()
    sample: int | None = None
    trial: bool = False
    seed: int

    @property
    def is_text(self) -> bool:
        """Whether a language model is trained, on text without labels."""
        return self.task.kind == LANGUAGE_MODEL

    @property
    def is_simple(self) -> bool:
        """Whether it is fitted at once, without optimizer steps."""
        return self.learner is not None and not LEARNERS[self.learner["name"]].trained


class RunSpec(Frozen):
    """One run of a plan, with all that performing it takes.

    Args:
        plan: hash of the plan.
        position: its place in the order, from 0.
        block: the seed's place; runs of one block are compared with each other.
        key: hash of the settings; a finished run with the same key is not run again.
        data: what `load_task` takes.
        tokenizer: None is the checkpoint's own.
        prompts: texts that a language model continues; None takes beginnings of validation texts.
        attention: layouts that the user registered.
        folder: that it is recorded in; empty until the plan is run.
        smoke: whether it is only tried for two steps, and not recorded.
    """

    plan: str
    study: str
    position: int
    block: int
    arm: str
    seed: int
    settings: RunSettings
    key: str
    signature: str
    steps: int
    data: dict[str, Any]
    model: ModelSource
    tokenizer: TokenizerSource | None = None
    prompts: tuple[str, ...] | None = None
    attention: dict[str, dict[str, Any]] = {}
    plugins: tuple[Plugin, ...] = ()
    checkpoint_every: int | str
    save_model: bool
    folder: str = ""
    smoke: bool = False

    @property
    def name(self) -> str:
        return f"{self.arm}/seed-{self.seed}"

    @property
    def run(self) -> RunFolder:
        return RunFolder(Path(self.folder))

    def at(self, runs: Path) -> RunSpec:
        """The same run, to be recorded in a ledger."""
        return self.model_copy(update={"folder": str(run_folder(runs, self.study, self.arm, self.seed).path)})


def hash_of(value: Any) -> str:
    """Of plain data, in 16 digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
