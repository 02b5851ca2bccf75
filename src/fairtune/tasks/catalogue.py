"""The catalogue of tasks by name, and tasks made of a user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.settings.file_task import FileTask
from fairtune.tasks.corpora import corpus_names
from fairtune.tasks.definitions import ALIASES, CATALOGUE, LANGUAGES, TITLES, family_of
from fairtune.tasks.duplicates import without_duplicates
from fairtune.tasks.file_tasks import load_file_task
from fairtune.tasks.published import load_published
from fairtune.tasks.registry import load_registered, registered_tasks
from fairtune.tasks.task import Task, prepared
from fairtune.tasks.titles.task import titles


def task_names() -> list[str]:
    """The tasks that classify, those that were registered last."""
    return [*CATALOGUE, *(task.name for task in registered_tasks().values() if not task.is_text)]


def load_task(spec: str | FileTask | Mapping[str, Any], train_on: str | None = None, dedupe: bool = False) -> Task:
    """A task's data, checked; read once and kept in the cache.

    Args:
        spec: a name of the catalogue, or a task made of files (also as plain data).
        train_on: a task of the catalogue whose training split replaces this task's own.
        dedupe: take duplicates out of the training split.

    Raises:
        DataError: what is wrong, where, and what to do.
    """
    task = _load(spec)
    if train_on is not None:
        task = _trained_on(task, _load(train_on, "train_on: task"))
    return without_duplicates(task) if dedupe else task


def _load(spec: str | FileTask | Mapping[str, Any], called: str = "task") -> Task:
    if not isinstance(spec, str):
        files = spec if isinstance(spec, FileTask) else FileTask.model_validate(spec)
        if files.kind != "classify":
            raise DataError(_is_text(files.name))
        return load_file_task(files)
    name = ALIASES.get(spec, spec)
    if name in CATALOGUE:
        return titles() if CATALOGUE[name] is TITLES else load_published(CATALOGUE[name])
    if name in corpus_names():
        raise DataError(_is_text(name))
    if name in registered_tasks():
        return load_registered(registered_tasks()[name])
    raise DataError(f"{called} '{spec}': {unknown(spec)}")


def _is_text(name: str) -> str:
    return f"task '{name}' is text for language models and has no labels. Tasks that classify: {one_of(_families())}."


def _trained_on(task: Task, other: Task) -> Task:
    """The task with another's training split."""
    shapes = {t.name: len(t.splits["train"].texts[0]) for t in (task, other)}
    if task.labels != other.labels or len(set(shapes.values())) > 1:
        raise DataError(
            f"train_on: task '{other.name}' has the labels {one_of(other.labels)} and {shapes[other.name]} text(s) an example; "
            f"'{task.name}' has {one_of(task.labels)} and {shapes[task.name]}. They must be the same."
        )
    splits = {**task.splits, "train": other.splits["train"]}
    source = f"{task.source}; trained on {other.name} ({other.source})"
    held = [task.facts().hashes, other.facts().hashes, task.kinds, other.kinds]
    return prepared(
        ["train_on", task.name, task.metric, list(task.labels), *held, source],
        lambda _: replace(task, splits=splits, source=source, known=None),
    )


def unknown(name: str) -> str:
    """What to say of a name that is not in the catalogue; the many languages of a task go by one name."""
    known = [*task_names(), *ALIASES, *corpus_names()]
    return (
        f"not in the catalogue; known: {one_of(_families())}; text for language models: "
        f"{one_of(corpus_names())}. Languages: {one_of(LANGUAGES)}.{nearest(name.lower(), known)} "
        "For your own data give a mapping with `train`, `text` and `label`."
    )


def _families() -> list[str]:
    """The tasks that classify, the languages of one as one."""
    return list(dict.fromkeys(family_of(name) for name in task_names()))
