"""What can be wrong with the metrics that a study names, in the file alone and beside the data."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fairtune.core.errors import FairtuneError, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS, metrics_of_kind
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.checks import has_known_task
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks import Task
from fairtune.tasks.corpora import is_text
from fairtune.tasks.splits import fixed_sample

OF_KIND = {"classify": "tasks that classify", TEXT: "language models"}


def metric_problems(study: Study, origins: Origins) -> list[Problem]:
    """Metrics of the other kind of task, a metric that is given twice, and a decision line where there is none to draw."""
    found = _problems(study) if has_known_task(study) else ()
    return [Problem(origins.of(path), dotted(path), reason) for path, reason in found]


def _problems(study: Study) -> Iterator[tuple[Path, str]]:
    kind = TEXT if is_text(study.task) else "classify"
    named: list[tuple[Path, str]] = [] if study.metric is None else [(("metric",), study.metric)]
    named += [(("compare", "also", place), name) for place, name in enumerate(study.compare.also)]
    for path, name in named:
        other = METRICS[name].kind
        if other != kind:
            allowed = one_of(metrics_of_kind(kind))
            yield path, f"{name} is for {OF_KIND[other]}, which this task is not; use one of {allowed}"
    written = (
        study.task.metric if isinstance(study.task, FileTask) and "metric" in study.task.model_fields_set else None
    )
    if None not in (study.metric, written) and study.metric != written:
        yield ("metric",), f"{study.metric} is given here and {written} in `task`; keep one of them"
    if kind == TEXT and study.compare.threshold != "half":
        yield ("compare", "threshold"), "a language model draws no line between classes; remove it"


def metric_of(study: Study, task_metric: str) -> str:
    """The metric that selects and decides: the study's, or else the task's own."""
    return study.metric or task_metric


def require_metrics(study: Study, data: Task) -> None:
    """Refuse metrics and a decision line that the task's classes do not allow.

    Raises:
        FairtuneError: with the reason.
    """
    own, classes = metric_of(study, data.metric), len(data.labels)
    places = {
        **{claim.metric: "claims.metric" for claim in study.claims if claim.metric},
        own: "metric" if study.metric else "task.metric",
        **dict.fromkeys(study.compare.also, "compare.also"),
    }
    if own in study.compare.also:
        raise FairtuneError(
            f"compare.also: {own} is the study's own metric, which has its verdicts anyway; remove it here."
        )
    _require_possible_target(study, own)
    for name, place in places.items():
        metric = METRICS[name]
        if not metric.fits(classes):
            raise FairtuneError(
                f"{place}: {name} is for {metric.classes}, and task '{data.name}' has {classes}; use {metric.instead}."
            )
        if metric.ranks:
            for split in ("validation", "test") if name == own else ("test",):
                _require_two_classes(study, data, name, place, split)
    if study.compare.threshold == "validation" and classes != 2:
        raise FairtuneError(
            f"compare.threshold: a line is picked between two classes, and task '{data.name}' has {classes}; use half."
        )


def _require_possible_target(study: Study, metric: str) -> None:
    target, (low, high) = study.compare.target, METRICS[metric].bounds
    if target is not None and not low <= target <= high:
        allowed = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        percent = f"; for {target:g} % write {target / 100:g}" if high == 1 < target <= 100 else ""
        raise FairtuneError(f"compare.target: found {target:g}; {metric} is {allowed}{percent}.")


def _require_two_classes(study: Study, data: Task, name: str, place: str, split: str) -> None:
    whole = data.splits[split]
    sizes = {study.settings(arm).sizes[split] for arm in study.arms}
    for size in sizes if len(np.unique(whole.labels)) > 1 else {None}:
        found = fixed_sample(whole, size)
        seen = np.unique(found.labels)
        if len(seen) < 2:
            sample = "" if len(found) == len(whole) else f" sample of {size:,} examples of the"
            raise FairtuneError(
                f"{place}: {name} says how well classes are ranked, and the{sample} {split} split of task '{data.name}' has one "
                f"class only ('{data.labels[int(seen[0])]}', n = {len(found):,}); give it examples of another, or use accuracy."
            )
