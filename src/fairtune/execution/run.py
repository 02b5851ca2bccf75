"""One run, from its job to its result: the flat list of what happens, in order."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.errors import LeaseLost, RunFailure, Stopped
from fairtune.core.files import write_json, write_sealed
from fairtune.core.plugins import take_plugins
from fairtune.execution.device_samples import DeviceSamples
from fairtune.execution.job import GONE, Job, describe_failure, failure_reason, record_failure
from fairtune.execution.learner_run import perform_learner
from fairtune.execution.start import build_start, plain_model
from fairtune.execution.task_data import load_task_once, planned_task, require_same, sample_of
from fairtune.ledger.environment import capture_environment, capture_load, continued, read_environment
from fairtune.ledger.events import EventLog, NoEvents, counted_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import write_predictions
from fairtune.ledger.records import EVENT as RECORD
from fairtune.ledger.records import write_arrays
from fairtune.ledger.run_times import run_times
from fairtune.ledger.seals import close_run
from fairtune.models.attention_layouts import take_layouts
from fairtune.models.init_card import frozen_fingerprint
from fairtune.models.sources import ModelSource, require_unchanged
from fairtune.models.tokenizers import load_tokenizer, tokenizer_folder
from fairtune.settings.learners import is_simple
from fairtune.settings.sections import Train
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.task import SPLITS
from fairtune.tasks.text_task import TextTask
from fairtune.tasks.tokens.encoded_splits import encode_task
from fairtune.training.checkpoints import RunStates
from fairtune.training.classification import Classification, TrainingTexts
from fairtune.training.contrastive import Contrastive
from fairtune.training.device import make_accelerator
from fairtune.training.language_modelling import LanguageModelling
from fairtune.training.loop import TrainingRun
from fairtune.training.memory import describe_memory, watch_memory
from fairtune.training.objectives import Objective
from fairtune.training.ranks import ALONE, Ranks
from fairtune.training.representation import NAME as REPRESENTATION
from fairtune.training.representation import representation
from fairtune.training.samples import continuations

__all__ = ["PreparedRun", "load_task_once", "perform_run", "prepare_run"]
LOOK_SECONDS = 5.0
"""How often a run looks whether its folder is still there."""
Report = Callable[[dict[str, Any]], None]


def perform_run(job: Job, device: str, check_stop: Callable[[], None], report: Report) -> dict[str, Any]:
    """Perform a run and record it. Returns its result, finished or failed.

    Raises:
        Stopped: it was asked to stop; its state is saved and it can go on later.
        LeaseLost: another process has taken it over; nothing more was written.
    """
    folder, begun = job.run, False
    folder.check_plan(job.plan)
    try:
        folder.begin(job.plan)
        begun = True
        return perform_alone(job, device, check_stop, report)
    except (Stopped, LeaseLost):
        raise
    except Exception as error:
        result, details = describe_failure(job, error, begun)
        record_failure(job, result, details)
        return result


def perform_alone(
    job: Job, device: str, check_stop: Callable[[], None], report: Report, ranks: Ranks = ALONE
) -> dict[str, Any]:
    """Perform a run whose folder is made, in this process, or this process's part of it.

    Returns:
        The result; nothing in processes other than the first.
    """
    log = EventLog(job.run.events) if ranks.leads else NoEvents()
    try:
        with DeviceSamples(log, device, job.run.path) if ranks.leads else nullcontext():
            if is_simple(_learned(job)):
                return perform_learner(job, job.run, device, log, check_stop, report)
            return _perform(job, job.run, device, log, check_stop, report, ranks)
    finally:
        log.close()


def _learned(job: Job) -> dict[str, Any]:
    """What a run learns with, as an arm of a plan has it."""
    return {"learner": job.plan["settings"].get("learner", {}).get("name")}


def _perform(
    job: Job,
    folder: RunFolder,
    device: str,
    log: EventLog,
    check_stop: Callable[[], None],
    report: Report,
    ranks: Ranks,
) -> dict[str, Any]:
    report({"phase": "preparing"})
    environment = capture_environment(device)
    if not ranks.alone:
        environment |= {"processes": ranks.size, "sharding": job.sharding}
    environment = continued(environment, read_environment(folder))
    if ranks.leads:
        write_sealed(folder.environment, environment)
    ready = prepare_run(job, device, log, check_stop, ranks)
    run = ready.run
    anew = not run.progress.unit and environment.pop("earlier", None)  # nothing of it was trained elsewhere
    if ranks.leads:
        if anew:
            write_sealed(folder.environment, environment)
        write_json(folder.card, ready.card)
    log.write("resumed", run.progress.unit, step=run.progress.step, signature=job.plan["signature"])
    watch_memory(run.device)
    looked = time.monotonic()
    try:
        while not run.done:
            run.advance()
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                _require_there(folder)
            report(_progress(run))
    except Stopped:
        if run.consistent and run.progress.unit:
            run.save()
        raise

    run.end_sharing()
    if not ranks.leads:
        return {}
    _require_there(folder)
    if frozen_fingerprint(run.model) != ready.frozen:
        raise RunFailure("a frozen tensor changed during training; the run cannot be trusted")
    write_predictions(
        folder.predictions, {name: run.objective.predictions(name, run.scores[name]) for name in run.scores}
    )
    _keep_representation(run, folder)
    tokenizer = load_tokenizer(ready.tokenizer, padding=not isinstance(run.objective, LanguageModelling))
    if isinstance(run.objective, LanguageModelling) and not is_trial(job):
        report({"phase": "writing"})
        write_json(folder.samples, continuations(run, tokenizer, job.prompts))
    if job.save_model:
        shutil.rmtree(
            folder.model, ignore_errors=True
        )  # what a killed attempt left, which would be sealed as this one's
        plain_model(run.accelerator.unwrap_model(run.model), list(run.methods)).save_pretrained(folder.model)
        tokenizer.save_pretrained(folder.model)
        if isinstance(run.objective, Contrastive):
            known = {"signature": job.plan["signature"], "max_length": run.train.longest}
            run.objective.save_head(run.model, run.device, folder.model, known)
    write_sealed(folder.environment, {**environment, "load_after": capture_load()})
    result = _result(job, run, ready, folder)
    write_json(folder.timing, run_times(result, counted_events(folder.events)))
    log.write("finished", run.progress.unit, **result["metrics"]["validation" if is_trial(job) else "test"])
    close_run(folder, job.plan["key"], result)
    folder.clear_scratch()
    run.accelerator.free_memory()
    return result


def _require_there(folder: RunFolder) -> None:
    if not folder.plan.exists():
        raise RunFailure(GONE)


def _keep_representation(run: TrainingRun, folder: RunFolder) -> None:
    """Keep what the scored weights make of test examples, for the report to draw; a run is finished without it too."""
    now = run.progress
    try:
        found = representation(run)
        if found is not None:
            step = now.step if now.best_step is None else now.best_step
            write_arrays(folder, REPRESENTATION, step, found)
            run.log.write(
                RECORD, now.unit, name=REPRESENTATION, step=step, epoch=now.epoch, examples=len(found["rows"])
            )
    except Stopped:
        raise
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        run.log.write("warning", now.unit, text=f"no representation was kept ({failure_reason(error)})")


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


def prepare_run(
    job: Job, device: str, log: EventLog, check_stop: Callable[[], None], ranks: Ranks = ALONE
) -> PreparedRun:
    """Bring together data, model and methods, prove what the run starts from, and take up a saved state."""
    # What the parent process was given must be known to this one, before anything else.
    take_plugins(job.plugins)
    take_layouts(job.attention)
    settings = job.plan["settings"]
    train, seed = Train.model_validate(settings["train"]), int(settings["seed"])
    accelerator = make_accelerator(device, train.precision, train.deterministic)
    source = ModelSource(**job.model)
    require_unchanged(source)
    tokenizer = Path(job.tokenizer["folder"]) if job.tokenizer else source.fetch()
    objective, labels = _objective(job, tokenizer, train, check_stop)

    check_stop()
    batch = objective.probe()
    start = build_start(settings, source, labels, batch, tokenizer)
    card = start.describe()
    frozen = frozen_fingerprint(start.model)
    for note in start.notes:
        log.write("warning", 0, text=note)
    if isinstance(objective, Contrastive):
        train = train.for_pairs()
    states = RunStates(job.run.checkpoint, job.plan["key"], lambda text: log.write("warning", 0, text=text), ranks)
    keep = partial(write_arrays, job.run) if ranks.leads else _keep_nothing
    run = TrainingRun(
        model=start.model, methods=start.methods, objective=objective, train=train, seed=seed, accelerator=accelerator, log=log,
        states=states, keep=keep, checkpoint_every=job.checkpoint_every, check_stop=check_stop, ranks=ranks,
    )  # fmt: skip
    return PreparedRun(run, card, frozen, tokenizer)


def _keep_nothing(name: str, step: int, arrays: Mapping[str, Any]) -> None:
    """The first process keeps it."""


def _objective(
    job: Job, tokenizer: Path, train: Train, check_stop: Callable[[], None]
) -> tuple[Objective, tuple[str, ...]]:
    """What is learned, and the labels that are told apart, of which a language model has none."""
    planned, trial = job.plan["settings"]["task"], is_trial(job)
    splits = [
        split for split in SPLITS if split != "test" or not trial
    ]  # what trials choose, the test split must not know
    if planned.get("kind") == TEXT:
        text = TextTask(load_corpus(job.task["spec"]), tokenizer_folder(tokenizer, padding=False), check_stop)
        require_same(text.fingerprint, planned)
        blocks = {split: text.blocks(split, train) for split in splits}
        return LanguageModelling(blocks, train.longest, planned["metric"], scores_final=not trial), ()
    task = planned_task(job)
    words = load_tokenizer(tokenizer)
    sample = sample_of(job)
    encoded = encode_task(task, words, train.longest, train.sizes, check_stop, sample)
    data = {split: encoded[split] for split in splits}
    if learner := job.plan["settings"].get("learner"):
        return Contrastive(data, planned["metric"], task.labels, int(learner["pairs"])), task.labels
    texts = TrainingTexts(task.splits["train"], words, train.longest, train.examples, sample)
    return Classification(data, planned["metric"], task.labels, texts), task.labels


def is_trial(job: Job) -> bool:
    """Whether a run tries settings, and is scored on validation alone."""
    return bool(job.plan["settings"].get("trial"))


def _progress(run: TrainingRun) -> dict[str, Any]:
    now = run.progress
    return {
        "phase": now.phase,
        "step": now.step,
        "steps": run.total_steps,
        "epoch": now.epoch,
        "best_score": now.best_score,
        "metric": run.objective.metric,
    }


def _result(job: Job, run: TrainingRun, ready: PreparedRun, folder: RunFolder) -> dict[str, Any]:
    now, objective = run.progress, run.objective
    learned = objective.describe(run.model, run.device, run.check_stop) if isinstance(objective, Contrastive) else None
    steps = np.array([e["seconds"] for e in counted_events(folder.events) if e["event"] == "step"])
    return {
        "status": "finished",
        "signature": job.plan["signature"],
        "time": round(time.time(), 3),
        "metric": run.objective.metric,
        "metrics": {split: found.metrics for split, found in run.scores.items()},
        **({"learner": learned} if learned else {}),
        "steps": now.step,
        "best_step": now.best_step,
        "evaluations": now.evaluations,
        "stopped_early": now.stopped_early,
        "skipped_steps": now.skipped_steps,
        "examples": now.examples,
        **({"micro_batch": now.micro_batch} if now.micro_batch is not None else {}),
        "tokens": now.tokens,
        "padding_share": now.padding / max(1, now.tokens + now.padding),
        "seconds": {**run.clock.seconds, "total": sum(run.clock.seconds.values()), "epochs": now.epoch_seconds},
        "step_seconds": {
            "n": len(steps),
            "median": float(np.median(steps)),
            "mean": float(steps.mean()),
            "p05": float(np.quantile(steps, 0.05)),
            "p95": float(np.quantile(steps, 0.95)),
        },
        "parameters": ready.card["parameters"],
        "frozen": {"tensors": len(ready.card["frozen"]), "sha256": ready.frozen, "unchanged": True},
        "memory": describe_memory(run),
    }
