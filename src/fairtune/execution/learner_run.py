"""The run of a simple baseline: read the examples, fit, score, record. It takes seconds, so one that was killed is done again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core.files import write_json, write_sealed
from fairtune.core.plugins import take_plugins
from fairtune.execution.job import Job
from fairtune.execution.task_data import planned_task, sample_of, used_splits
from fairtune.learners.base import FittedLearner, LabelledInputs, Scores
from fairtune.learners.registry import fit_learner
from fairtune.ledger.environment import capture_environment, capture_load
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.seals import close_run
from fairtune.models.attention_layouts import take_layouts
from fairtune.models.sources import ModelSource, require_unchanged
from fairtune.settings.learners import LEARNERS
from fairtune.settings.metrics import classification_metrics
from fairtune.settings.sections import Train
from fairtune.tasks.task import SPLITS, Split, Task

Report = Callable[[dict[str, Any]], None]
CheckStop = Callable[[], None]
SCORED = ("validation", "test")


@dataclass
class Stopwatch:
    """Seconds by purpose."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, purpose: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[purpose] = self.seconds.get(purpose, 0.0) + time.perf_counter() - began


def perform_learner(
    job: Job, folder: RunFolder, device: str, log: EventLog, check_stop: CheckStop, report: Report
) -> dict[str, Any]:
    """Fit a simple baseline and record it as every run is recorded. Returns its result."""
    report({"phase": "preparing"})
    environment = capture_environment(device)
    write_sealed(folder.environment, environment)
    log.write("resumed", 0, step=0, signature=job.plan["signature"])
    take_plugins(job.plugins)
    take_layouts(job.attention)
    settings, watch = job.plan["settings"], Stopwatch()
    name, train = str(settings["learner"]["name"]), Train.model_validate(settings["train"])
    with watch.of("data"):
        task = planned_task(job)
        splits = used_splits(task, train, sample_of(job))
        examples = _examples(job, task, splits, train, device, check_stop, report)
    check_stop()
    report({"phase": "fitting"})
    with watch.of("fit"):
        learner = fit_learner(
            name,
            examples["train"],
            examples["validation"],
            len(task.labels),
            job.plan["settings"]["task"]["metric"],
            check_stop,
        )
    report({"phase": "score"})
    with watch.of("score"):
        scores = {split: learner.scores(examples[split].inputs) for split in SCORED}
    for note in learner.notes:
        log.write("warning", 0, text=note)
    found = {"name": name, "short": LEARNERS[name].short, "examples": len(splits["train"]), **learner.describe()}
    write_json(folder.card, {"learner": found, "notes": list(learner.notes)})
    log.write("fitted", 0, **found)
    write_predictions(
        folder.predictions,
        {split: Predictions(splits[split].ids, splits[split].labels, scores[split]) for split in SCORED},
    )
    if job.save_model:
        _keep(job, learner, task, train, folder.model)
    write_sealed(folder.environment, {**environment, "load_after": capture_load()})
    metrics = {split: _metrics(splits[split], scores[split]) for split in SCORED}
    result = {
        "status": "finished",
        "signature": job.plan["signature"],
        "time": round(time.time(), 3),
        "metric": job.plan["settings"]["task"]["metric"],
        "metrics": metrics,
        "learner": found,
        "steps": 0,
        "examples": len(splits["train"]),
        "seconds": {**watch.seconds, "total": sum(watch.seconds.values())},
    }
    log.write("finished", 0, **metrics["test"])
    close_run(folder, job.plan["key"], result)
    folder.clear_scratch()
    return result


def _examples(
    job: Job, task: Task, splits: dict[str, Split], train: Train, device: str, check_stop: CheckStop, report: Report
) -> dict[str, LabelledInputs]:
    """What the learner reads of each split: its texts, or what its encoder makes of them."""
    if not LEARNERS[job.plan["settings"]["learner"]["name"]].encoder:
        return {name: LabelledInputs(split.texts, split.labels) for name, split in splits.items()}
    from fairtune.learners.encoder_features import encoder_features
    from fairtune.models.tokenizers import load_tokenizer
    from fairtune.tasks.tokens.encoded_splits import encode_task

    source = ModelSource(**job.model)
    require_unchanged(source)
    tokenizer = load_tokenizer(Path(job.tokenizer["folder"]) if job.tokenizer else source.fetch())
    tokens = encode_task(task, tokenizer, train.longest, train.sizes, check_stop, sample_of(job))
    total, before, found = sum(map(len, tokens.values())), 0, {}
    for name in SPLITS:
        start = before

        def show(done: int, start: int = start) -> None:
            report({"phase": "features", "done": start + done, "of": total})

        features = encoder_features(source, tokenizer, tokens[name], device, check_stop, show)
        found[name], before = LabelledInputs(features, tokens[name].labels), before + len(tokens[name])
    return found


def _keep(job: Job, learner: FittedLearner, task: Task, train: Train, folder: Path) -> None:
    """Keep the fitted learner; what a killed attempt left would be sealed as this one's."""
    shutil.rmtree(folder, ignore_errors=True)
    known: dict[str, Any] = {
        "labels": list(task.labels),
        "metric": job.plan["settings"]["task"]["metric"],
        "signature": job.plan["signature"],
    }
    if LEARNERS[learner.name].encoder:
        known |= {"encoder": job.plan["settings"]["model"], "max_length": train.longest, "pooling": "mean"}
    learner.save(folder, known)


def _metrics(split: Split, scores: Scores) -> dict[str, float]:
    from fairtune.learners.base import score_trial

    found = classification_metrics(split.labels, scores)
    return {"loss": score_trial({}, split.labels, scores, next(iter(found))).loss, **found}
