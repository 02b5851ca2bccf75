"""A run ready to train: data, model, methods and loop brought together from its spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from fairtune.core.errors import RunFailure
from fairtune.core.plugins import take_plugins
from fairtune.core.stages import stoppable
from fairtune.execution.start import build_start
from fairtune.ledger.events import EventLog
from fairtune.ledger.predictions import Predictions, TextScores
from fairtune.ledger.records import write_arrays
from fairtune.methods.registry import parse_method_use
from fairtune.models.attention_layouts import take_layouts
from fairtune.models.init_card import frozen_fingerprint
from fairtune.models.sources import require_unchanged
from fairtune.models.tokenizers import load_tokenizer, tokenizer_folder
from fairtune.study.run_spec import RunSpec
from fairtune.tasks import Task, load_task
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.task import SPLITS
from fairtune.tasks.tokens.blocks import TextTask
from fairtune.tasks.tokens.encoded_splits import encode_task
from fairtune.training.checkpoints import RunStates
from fairtune.training.classification import Classification, TrainingTexts
from fairtune.training.contrastive import Contrastive
from fairtune.training.device import make_accelerator
from fairtune.training.language_modelling import LanguageModelling
from fairtune.training.loop import TrainingRun
from fairtune.training.objectives import Objective

CheckStop = Callable[[], None]


@dataclass(frozen=True)
class PreparedRun:
    """A run that can be advanced.

    Args:
        frozen: fingerprint of the frozen tensors at step 0.
        tokenizer: the folder that it is in.
    """

    run: TrainingRun
    card: dict[str, Any]
    frozen: str
    tokenizer: Path

    def require_frozen(self) -> None:
        """Fail a run in which a frozen tensor changed."""
        if frozen_fingerprint(self.run.model) != self.frozen:
            raise RunFailure("a frozen tensor changed during training; the run cannot be trusted")


@dataclass(frozen=True)
class Trained:
    """What training or fitting came to, before it is sealed.

    Args:
        unit: of the run's events.
        save: writes the model into a new folder.
        result: what `result.json` says besides what all runs have.
    """

    unit: int
    predictions: Mapping[str, Predictions | TextScores]
    metrics: dict[str, dict[str, float]]
    save: Callable[[Path], None]
    result: dict[str, Any]


def prepare_run(spec: RunSpec, device: str, log: EventLog, check_stop: CheckStop) -> PreparedRun:
    """Bring together data, model and methods, prove what the run starts from, and resume a saved state."""
    take_plugins(spec.plugins)  # what the planning process was given must be known to this one, before anything else
    take_layouts(spec.attention)
    settings, train = spec.settings, spec.settings.train
    accelerator = make_accelerator(device, train.precision, train.deterministic)
    require_unchanged(spec.model)
    tokenizer = tokenizer_of(spec)
    with stoppable(check_stop):
        objective, labels = _objective(spec, tokenizer)
    check_stop()
    start = build_start(
        spec.model, [parse_method_use(use) for use in settings.methods], settings.seed, labels, batch=objective.probe(),
        tokenizer=tokenizer, attention=train.attention, pooled=settings.learner is not None,
    )  # fmt: skip
    card, frozen = start.describe(), frozen_fingerprint(start.model)

    def warn(text: str) -> None:
        log.write("warning", 0, text=text)

    for note in start.notes:
        warn(note)
    run = TrainingRun(
        model=start.model, methods=start.methods, objective=objective, seed=settings.seed, accelerator=accelerator, log=log,
        train=train.for_pairs() if isinstance(objective, Contrastive) else train, keep=partial(write_arrays, spec.run),
        states=RunStates(spec.run.checkpoint, spec.key, warn, spec.checkpoint_every), check_stop=check_stop,
    )  # fmt: skip
    return PreparedRun(run, card, frozen, tokenizer)


def tokenizer_of(spec: RunSpec) -> Path:
    """The folder of a run's tokenizer."""
    return Path(spec.tokenizer.folder) if spec.tokenizer else spec.model.fetch()


def _objective(spec: RunSpec, tokenizer: Path) -> tuple[Objective, tuple[str, ...]]:
    """What is learned, and the labels to tell apart, of which a language model has none."""
    settings, train = spec.settings, spec.settings.train
    planned, splits = settings.task, [split for split in SPLITS if split != "test" or not settings.trial]
    if settings.is_text:
        text = TextTask(load_corpus(spec.data["spec"]), tokenizer_folder(tokenizer, padding=False))
        _require_same(text.fingerprint, planned.fingerprint)
        blocks = {split: text.blocks(split, train) for split in splits}
        return LanguageModelling(blocks, train.longest, planned.metric, scores_final=not settings.trial), ()
    task, words = planned_task(spec), load_tokenizer(tokenizer)
    encoded = encode_task(task, words, train.longest, train.sizes, settings.sample)
    data = {split: encoded[split] for split in splits}
    if settings.learner:
        return Contrastive(data, planned.metric, task.labels, each=int(settings.learner["pairs"])), task.labels
    texts = TrainingTexts(task.splits["train"], words, train.longest, train.examples, settings.sample)
    return Classification(data, planned.metric, task.labels, texts), task.labels


@lru_cache(maxsize=2)
def load_task_once(spec: str) -> Task:
    """A task's data, read once for all runs of a process."""
    return load_task(**json.loads(spec))


def planned_task(spec: RunSpec) -> Task:
    """The task that a run classifies.

    Raises:
        RunFailure: its data is not what was planned.
    """
    task = load_task_once(json.dumps(spec.data))
    _require_same(task.fingerprint, spec.settings.task.fingerprint)
    return task


def _require_same(fingerprint: str, planned: str) -> None:
    if fingerprint != planned:
        raise RunFailure(
            "the task's data changed since the study was planned; run `fairtune run` again to make a new plan"
        )
