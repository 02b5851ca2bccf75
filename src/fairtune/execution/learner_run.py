"""A simple baseline, fitted at once: its data, its fit, its scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fairtune.core.files import write_json
from fairtune.core.plugins import take_plugins
from fairtune.core.stages import stoppable
from fairtune.execution.prepare import Trained, planned_task, tokenizer_of
from fairtune.learners.base import LabelledInputs, score_trial
from fairtune.learners.registry import KINDS
from fairtune.ledger.events import EventLog
from fairtune.ledger.predictions import Predictions
from fairtune.models.attention_layouts import take_layouts
from fairtune.models.sources import require_unchanged
from fairtune.settings.learners import LEARNERS
from fairtune.settings.metrics import classification_metrics
from fairtune.study.run_spec import RunSpec
from fairtune.tasks.splits import fixed_sample
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


def fit(spec: RunSpec, device: str, log: EventLog, check_stop: CheckStop, report: Report) -> Trained:
    """Fit a simple baseline and score it."""
    log.write("resumed", 0, step=0, signature=spec.signature)
    take_plugins(spec.plugins)
    take_layouts(spec.attention)
    settings, train, watch = spec.settings, spec.settings.train, Stopwatch()
    assert settings.learner is not None, "asked only of simple baselines"
    name, metric = str(settings.learner["name"]), settings.task.metric
    with watch.of("data"):
        task = planned_task(spec)
        # The same examples, in the same order, as `encode_task` has as tokens.
        splits = {split: fixed_sample(task.splits[split], train.sizes[split], settings.sample) for split in SPLITS}
        examples = _examples(spec, task, splits, device, check_stop, report)
    check_stop()
    report({"phase": "fitting"})
    with watch.of("fit"):
        learner = KINDS[name].fit(examples["train"], examples["validation"], len(task.labels), metric, check_stop)
    report({"phase": "score"})
    with watch.of("score"):
        scores = {split: learner.scores(examples[split].inputs) for split in SCORED}
    for note in learner.notes:
        log.write("warning", 0, text=note)
    found = {"name": name, "short": LEARNERS[name].short, "examples": len(splits["train"]), **learner.describe()}
    write_json(spec.run.card, {"learner": found, "notes": list(learner.notes)})
    log.write("fitted", 0, **found)
    metrics = {}
    for split in SCORED:
        known, labels = classification_metrics(splits[split].labels, scores[split]), splits[split].labels
        metrics[split] = {"loss": score_trial({}, labels, scores[split], next(iter(known))).loss, **known}
    known_of_it: dict[str, Any] = {"labels": list(task.labels), "metric": metric, "signature": spec.signature}
    if LEARNERS[name].encoder:
        assert settings.model is not None, "an encoder is a model"
        known_of_it |= {"encoder": settings.model.as_json(), "max_length": train.longest, "pooling": "mean"}
    return Trained(
        unit=0,
        predictions={s: Predictions(splits[s].ids, splits[s].labels, scores[s]) for s in SCORED},
        metrics=metrics,
        save=lambda place: learner.save(place, known_of_it),
        result={
            "learner": found,
            "steps": 0,
            "examples": len(splits["train"]),
            "seconds": {**watch.seconds, "total": sum(watch.seconds.values())},
        },
    )


def _examples(
    spec: RunSpec, task: Task, splits: dict[str, Split], device: str, check_stop: CheckStop, report: Report
) -> dict[str, LabelledInputs]:
    """What the learner reads of each split: its texts, or what its encoder makes of them."""
    settings = spec.settings
    assert settings.learner is not None, "asked only of simple baselines"
    if not LEARNERS[settings.learner["name"]].encoder:
        return {name: LabelledInputs(split.texts, split.labels) for name, split in splits.items()}
    from fairtune.learners.encoder_features import encoder_features
    from fairtune.models.tokenizers import load_tokenizer
    from fairtune.tasks.tokens.encoded_splits import encode_task

    require_unchanged(spec.model)
    tokenizer, train = load_tokenizer(tokenizer_of(spec)), settings.train
    with stoppable(check_stop):
        tokens = encode_task(task, tokenizer, train.longest, train.sizes, settings.sample)
    total, before, found = sum(map(len, tokens.values())), 0, {}
    for name in SPLITS:
        start = before

        def show(done: int, start: int = start) -> None:
            report({"phase": "features", "done": start + done, "of": total})

        features = encoder_features(spec.model, tokenizer, tokens[name], device, check_stop, show)
        found[name], before = LabelledInputs(features, tokens[name].labels), before + len(tokens[name])
    return found
