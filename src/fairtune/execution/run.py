"""One run, from its spec to its result: the flat list of what happens, in order."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.errors import LeaseLost, RunFailure, Stopped
from fairtune.core.files import write_json, write_sealed
from fairtune.core.out_of_memory import free_memory
from fairtune.execution.device_samples import DeviceSamples
from fairtune.execution.failures import GONE, record_error
from fairtune.execution.learner_run import fit
from fairtune.execution.prepare import PreparedRun, Trained, prepare_run
from fairtune.execution.start import plain_model, save_adapter
from fairtune.ledger.environment import capture_environment, capture_load, continued, read_environment
from fairtune.ledger.events import EventLog, counted_events
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import write_predictions
from fairtune.ledger.seals import close_run
from fairtune.ledger.timings import run_times
from fairtune.models.tokenizers import load_tokenizer
from fairtune.study.run_spec import RunSpec
from fairtune.training.loop import TrainingRun
from fairtune.training.memory import describe_memory, watch_memory
from fairtune.training.representation import keep_representation
from fairtune.training.samples import continuations

LOOK_SECONDS = 5.0
"""How often a run checks that its folder is still there."""
Report = Callable[[dict[str, Any]], None]
CheckStop = Callable[[], None]


def perform_run(spec: RunSpec, device: str, check_stop: CheckStop, report: Report) -> dict[str, Any]:
    """Perform a run and record it. Returns its result, finished or failed.

    Raises:
        Stopped: it was asked to stop; its state is saved and it can go on later.
        LeaseLost: another process has taken it over; nothing more was written.
    """
    folder, begun = spec.run, False
    folder.check_plan(spec.as_json())
    try:
        folder.begin(spec.as_json())
        begun = True
        log = EventLog(folder.events)
        try:
            with DeviceSamples(log, device, folder.path):
                return _perform(spec, device, log, check_stop, report)
        finally:
            log.close()
            free_memory()
    except (Stopped, LeaseLost):
        raise
    except Exception as error:
        return record_error(spec, error, begun)


def _perform(spec: RunSpec, device: str, log: EventLog, check_stop: CheckStop, report: Report) -> dict[str, Any]:
    report({"phase": "preparing"})
    folder = spec.run
    environment = capture_environment(device)
    if not spec.settings.is_simple:  # which is fitted from scratch, whatever was done elsewhere
        environment = continued(environment, read_environment(folder))
    write_sealed(folder.environment, environment)
    if spec.settings.is_simple:
        done = fit(spec, device, log, check_stop, report)
    else:
        ready = prepare_run(spec, device, log, check_stop)
        if not ready.run.progress.unit and environment.pop("earlier", None):  # nothing of it was trained elsewhere
            write_sealed(folder.environment, environment)
        done = _train(spec, ready, log, report)
    write_predictions(folder.predictions, done.predictions)
    shutil.rmtree(folder.model, ignore_errors=True)  # what a killed attempt left would be sealed as this one's
    if spec.save_model:
        done.save(folder.model)
    write_sealed(folder.environment, {**environment, "load_after": capture_load()})
    result = {
        "status": "finished",
        "signature": spec.signature,
        "time": round(time.time(), 3),
        "metric": spec.settings.task.metric,
        "metrics": done.metrics,
        **done.result,
    }
    if not spec.settings.is_simple:
        write_json(folder.timing, run_times(result, counted_events(folder.events)))
    log.write("finished", done.unit, **done.metrics["validation" if spec.settings.trial else "test"])
    close_run(folder, spec.key, result)
    folder.clear_scratch()
    return result


def _train(spec: RunSpec, ready: PreparedRun, log: EventLog, report: Report) -> Trained:
    """Train to the end, then make what is recorded of the trained model."""
    folder, run, objective = spec.run, ready.run, ready.run.objective
    write_json(folder.card, ready.card)
    log.write("resumed", run.progress.unit, step=run.progress.step, signature=spec.signature)
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
    _require_there(folder)
    ready.require_frozen()
    keep_representation(run)
    is_text = spec.settings.is_text
    tokenizer = load_tokenizer(ready.tokenizer, padding=not is_text)
    if is_text and not spec.settings.trial:
        report({"phase": "writing"})
        write_json(folder.samples, continuations(run, tokenizer, spec.prompts))
    result = _result(run, ready, folder)

    def save(place: Path) -> None:
        trained = run.accelerator.unwrap_model(run.model)
        save_adapter(trained, run.methods, place / folder.adapter.name)
        plain_model(trained, list(run.methods)).save_pretrained(place)
        tokenizer.save_pretrained(place)
        objective.save_head(
            run.model, run.device, place, {"signature": spec.signature, "max_length": run.train.longest}
        )

    predictions = {name: objective.predictions(name, found) for name, found in run.scores.items()}
    metrics = {name: found.metrics for name, found in run.scores.items()}
    return Trained(run.progress.unit, predictions, metrics, save, result)


def _require_there(folder: RunFolder) -> None:
    if not folder.plan.exists():
        raise RunFailure(GONE)


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


def _result(run: TrainingRun, ready: PreparedRun, folder: RunFolder) -> dict[str, Any]:
    now = run.progress
    learned = run.objective.describe_head(run.model, run.device, run.check_stop)
    return {
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
        "step_seconds": _describe_steps(counted_events(folder.events)),
        "parameters": ready.card["parameters"],
        "frozen": {"tensors": len(ready.card["frozen"]), "sha256": ready.frozen, "unchanged": True},
        "memory": describe_memory(run),
    }


def _describe_steps(events: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """How long a run's optimizer steps took, all of them."""
    seconds = np.array([event["seconds"] for event in events if event["event"] == "step"])
    return {
        "n": len(seconds),
        "median": float(np.median(seconds)),
        "mean": float(seconds.mean()),
        "p05": float(np.quantile(seconds, 0.05)),
        "p95": float(np.quantile(seconds, 0.95)),
    }
