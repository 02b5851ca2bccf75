"""A fit: one training run in this process, by the same engine as a study's runs."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from fairtune.classifier.calibration import find_temperature, fold_temperature
from fairtune.classifier.errors import (
    FitError,
    InputError,
    SettingsError,
    UnusableModelError,
)
from fairtune.classifier.evaluation import confusion, overall
from fairtune.classifier.process import Interrupt, borrowed_process, find_device
from fairtune.classifier.progress import (
    BestWeights,
    EventList,
    FitWatcher,
    history_of,
)
from fairtune.classifier.provenance import (
    Provenance,
    data_of,
    settings_of,
    signature_of,
)
from fairtune.classifier.settings import WHERE, Settings
from fairtune.classifier.training_data import Data
from fairtune.core.errors import ModelError, RunFailure, Stopped, one_of
from fairtune.core.printable import printable
from fairtune.core.stages import stoppable
from fairtune.execution.failures import failure_reason
from fairtune.execution.start import build_start, plain_model
from fairtune.ledger.environment import capture_environment
from fairtune.methods.registry import parse_method_use
from fairtune.models.model_parts import evaluating, require_rows
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.models.transformers_files import explain_failure, read_config
from fairtune.settings.metrics import METRICS, metrics_of_classes, predicted_classes
from fairtune.settings.score_metrics import ScoredExamples
from fairtune.settings.values import AUTO
from fairtune.study.cautions import language_caution, setting_cautions
from fairtune.study.problems import Problem
from fairtune.tasks.card.lengths import auto_length, count_tokens
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import Encoded, encode
from fairtune.training.classification import Classification, TrainingTexts, to_device
from fairtune.training.device import make_accelerator
from fairtune.training.loop import TrainingRun
from fairtune.training.objectives import Evaluation
from fairtune.training.progress import SCORE

WIDE, SMALL_RATE, LARGE_RATE = 512, 1e-4, 2e-5
FACTS = ("fairtune", "python", "system", "cpu", "device", "packages", "torch")


@dataclass(frozen=True)
class Fitted:
    """A classifier, trained."""

    network: Any
    tokenizer: Any
    device: str
    provenance: Provenance


def train_classifier(settings: Settings, data: Data, watcher: FitWatcher, interrupt: Interrupt) -> Fitted:
    """Train, select, calibrate. What the caller's process held before is there again afterwards.

    Raises:
        FairtuneError: something about the parameters, the texts or the model does not fit, or training cannot go on.
        KeyboardInterrupt: Ctrl-C came before anything was learned.
    """
    device = find_device(settings.device)
    with borrowed_process(device), tempfile.TemporaryDirectory(prefix="fairtune-fit-") as folder, explained_failures():
        return _train(settings, data, device, Path(folder), watcher, interrupt)


@contextmanager
def explained_failures() -> Iterator[None]:
    """What can go wrong in a fit, in words of its own."""
    try:
        yield
    except ModelError as error:
        raise UnusableModelError(str(error)) from None
    except RunFailure as error:
        raise FitError(f"fit: {error}.") from None
    except (RuntimeError, MemoryError, OSError) as error:
        reason = failure_reason(error)
        if reason.startswith(type(error).__name__) or isinstance(error, FitError | UnusableModelError):
            raise  # not foreseen: a fault of fairtune's own, with its traceback
        raise FitError(f"fit: {reason}.") from error


def _train(
    settings: Settings, data: Data, device: str, folder: Path, watcher: FitWatcher, interrupt: Interrupt
) -> Fitted:
    try:
        source = find_model(settings.model).fetched()
        tokenizer = load_tokenizer(source.fetch())
        with stoppable(interrupt.check_stop):
            length = input_length(settings, source, tokenizer, data.splits["train"])
            chosen = {"max_length": length, "lr": _rate(source) if settings.auto_lr else settings.train.lr}
            settings = replace(settings, train=settings.train.model_copy(update=chosen))
            require_fit(settings, data)
            encoded = {name: encoded_split(split, name, tokenizer, length) for name, split in data.splits.items()}
        cautions = _cautions(settings, data, source)
        run = _prepare_run(settings, data, source, tokenizer, encoded, device, folder, interrupt.check_stop)
    except Stopped:
        raise KeyboardInterrupt from None
    scores, partial = _train_to_end(run, watcher)
    network = plain_model(run.accelerator.unwrap_model(run.model, keep_fp32_wrapper=False), list(run.methods)).eval()
    calibration = None
    if settings.calibrate and scores is not None:
        calibration = find_temperature(scores, encoded["validation"].labels)
        fold_temperature(network, calibration.temperature)
    events = run.log.events if isinstance(run.log, EventList) else []
    facts = data_of(data.classes, dict(data.splits), data.how)
    everything = settings_of(settings, source, facts)
    step = run.progress.best_step or 0
    if scores is not None and calibration is not None:
        scores = scores / calibration.temperature
    provenance = Provenance(
        labels=data.classes.values,
        width=data.width,
        names=None if data.names is None else list(data.names),
        max_length=length,
        settings=everything,
        data=facts,
        history=[{**row, "best": row["step"] == step} for row in history_of(events, run.steps_per_epoch)],
        step=step,
        steps=run.total_steps,
        epoch=math.ceil(step / run.steps_per_epoch),
        partial=partial,
        validation=None if scores is None else figures_of(encoded["validation"], scores),
        calibration=calibration,
        environment=environment_of(device),
        notes=[
            *data.notes,
            *cautions,
            *(f"{use.name} {said}" for use in settings.methods if (said := use.config.explained(data.classes.names))),
            *(event["text"] for event in events if event["event"] == "warning"),
        ],
        signature=signature_of(everything, partial),
        label=data.label,
    )
    run.optimizer.state.clear()  # what holds it may live on until Python next looks for cycles
    return Fitted(network, tokenizer, device, provenance)


def _cautions(settings: Settings, data: Data, source: ModelSource) -> list[str]:
    """What to know of these settings and texts; a warning each, before the time is spent."""
    train, rows = settings.train, data.splits["train"]
    found = [
        *setting_cautions(train, train.total_steps(len(rows)), train.lr),
        language_caution("the data", [rows], source.hub_id or source.name),
    ]
    texts = [printable(str(caution)) for caution in found if caution is not None]
    for text in texts:
        warnings.warn(text, UserWarning, stacklevel=2)
    return texts


def input_length(settings: Settings, source: ModelSource, tokenizer: Any, train: Split) -> int:
    """`max_length` as a number, counted on the training texts where it is auto."""
    wanted = settings.train.max_length
    if wanted == AUTO:
        return auto_length(count_tokens(train, tokenizer), source.positions)
    length = settings.train.longest
    if source.positions is not None and length > source.positions:
        reason = (
            f"{length} is too long: model '{source.name}' has {source.positions} positions; lower it, or use 'auto'."
        )
        raise SettingsError([Problem(WHERE, "max_length", reason)])
    return length


def _rate(source: ModelSource) -> float:
    """What `lr` is where it is auto: small models learn too little in a few epochs at the rate that suits large ones."""
    config: Any = read_config(source.fetch(), f"model '{source.name}'").get_text_config()
    return SMALL_RATE if getattr(config, "hidden_size", WIDE) < WIDE else LARGE_RATE


def require_fit(settings: Settings, data: Data) -> None:
    """Refuse a method that cannot work with so few examples, or such classes, and a metric that has no meaning here."""
    found = [
        Problem(WHERE, f"methods[{place}].{use.name}", problem)
        for place, use in enumerate(settings.methods)
        if (problem := use.config.data_problem(len(data.splits["train"]), data.classes.names))
    ]
    classes = len(data.classes.values)
    if not (metric := METRICS[settings.metric]).fits(classes):
        allowed = one_of(metrics_of_classes(classes))
        reason = f"{settings.metric} is for {metric.classes}, and there are {classes}; use {allowed}."
        found.append(Problem(WHERE, "metric", reason))
    held = data.splits.get("validation")
    if METRICS[settings.metric].ranks and held is not None and len(np.unique(held.labels)) < 2:
        reason = f"{settings.metric} ranks classes, and all {len(held):,} validation examples are of one; use accuracy."
        found.append(Problem(WHERE, "metric", reason))
    if found:
        raise SettingsError(found)


def encoded_split(split: Split, name: str, tokenizer: Any, length: int) -> Encoded:
    found = encode(split, tokenizer, length)
    empty = np.flatnonzero(found.lengths == 0)
    if len(empty):
        raise InputError(
            f"{name}: {len(empty):,} texts, the first of them {split.texts[int(empty[0])]!r}, are nothing to this model, whose "
            "tokenizer adds no special tokens; remove them."
        )
    return found


def _prepare_run(
    settings: Settings, data: Data, source: ModelSource, tokenizer: Any, encoded: dict[str, Encoded], device: str,
    folder: Path, check_stop: Callable[[], None],
) -> TrainingRun:  # fmt: skip
    train, names = settings.train, data.classes.names
    accelerator = make_accelerator(device, train.precision, train.deterministic)
    uses = [parse_method_use(use) for use in settings.methods]
    start = build_start(source, uses, settings.seed, names, attention=train.attention)
    for split in encoded.values():
        require_rows(start.loaded.network, split.tokens)
    _require_answers(start.model, encoded["train"], source)
    texts = TrainingTexts(data.splits["train"], tokenizer, train.longest)
    log = EventList()
    for note in start.notes:
        log.write("warning", 0, text=note)
    return TrainingRun(
        model=start.model, methods=start.methods, objective=Classification(encoded, settings.metric, names, texts), train=train,
        seed=settings.seed, accelerator=accelerator, log=log, states=BestWeights(folder, "fit", lambda _: None), keep=_forget,
        check_stop=check_stop,
    )  # fmt: skip


def _require_answers(model: nn.Module, data: Encoded, source: ModelSource) -> None:
    """Refuse a model that no text goes through, whatever its files are."""
    few = to_device(data, np.arange(min(2, len(data.lengths))), torch.device("cpu"))
    with explain_failure(f"model '{source.name}': no text goes through it"), evaluating(model), torch.no_grad():
        model(**few)


def _train_to_end(run: TrainingRun, watcher: FitWatcher) -> tuple[Any, bool]:
    """Train to the end, or until Ctrl-C: the best weights are in the model then. Returns their validation scores, and
    whether training was interrupted."""
    watcher.begin(run)
    try:
        while not run.done:
            evaluations = run.progress.evaluations
            run.advance()
            watcher.step(run)
            if run.progress.evaluations > evaluations and isinstance(run.log, EventList):
                watcher.evaluated(run, history_of(run.log.events, run.steps_per_epoch)[-1])
        return run.scores["validation"].arrays.get("scores"), False
    except Stopped:
        now = run.progress
        if not now.step:
            raise KeyboardInterrupt from None  # nothing is learned yet
        if now.best_step is None:
            now.best_step = now.step
            run.states.save_best(run, Evaluation({}, {}))
        return run.states.restore_best(run).arrays.get("scores"), now.phase != SCORE
    finally:
        watcher.end()


@cache
def environment_of(device: str) -> dict[str, Any]:
    """What does not change while the process lives."""
    found = capture_environment(device)
    return {name: found[name] for name in FACTS}


def figures_of(data: Encoded, scores: Any) -> list[dict[str, Any]]:
    matrix = confusion(data.labels, predicted_classes(scores), scores.shape[1])
    return overall(matrix, ScoredExamples(data.labels, scores))


def _forget(name: str, step: int, arrays: Mapping[str, Any]) -> None:
    """What methods record is for studies."""
