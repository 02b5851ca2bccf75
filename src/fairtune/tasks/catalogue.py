"""The catalogue of tasks by name, and tasks made of a user's own files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.settings.file_task import FileTask
from fairtune.tasks.definitions import ALIASES, DEFINITIONS, LANGUAGES, TEXTS, TRANSLATED, family_of
from fairtune.tasks.duplicates import without_duplicates
from fairtune.tasks.packaged import movie_reviews
from fairtune.tasks.published import load_published
from fairtune.tasks.reading.shards import file_identity, has_column, read_rows
from fairtune.tasks.splits import Column, by_hash, make_split, read_labels
from fairtune.tasks.task import SPLITS, Task
from fairtune.tasks.task_cache import prepared
from fairtune.tasks.titles import task as title_task


def task_names() -> list[str]:
    """The tasks that classify."""
    return list(_CATALOGUE)


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
        return _from_files(spec if isinstance(spec, FileTask) else FileTask.model_validate(spec))
    name = ALIASES.get(spec, spec)
    if name in _CATALOGUE:
        return _CATALOGUE[name]()
    if any(text.name == name for text in TEXTS):
        raise DataError(_is_text(name))
    raise DataError(f"{called} '{spec}': {unknown(spec)}")


def _is_text(name: str) -> str:
    return (
        f"task '{name}' is text for language models and has no labels, so that nothing can be classified with it; "
        "name it as the `task` of a study of language models. Tasks that classify: "
        f"{one_of(_families())}."
    )


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
    known = [*_CATALOGUE, *ALIASES, *(text.name for text in TEXTS)]
    family, _, rest = name.lower().partition("/")
    if family == "xnli" and name.lower() not in known:
        language, _, variant = rest.partition("/")
        what = "has no such language" if language not in ("", *LANGUAGES) else "needs a language"
        if language in LANGUAGES:
            what = f"has no '{variant}' of {language}"
        return (
            f"'xnli' {what}; write `xnli/<language>` with one of {one_of(LANGUAGES)}, or `xnli/<language>/{TRANSLATED}` with "
            "any of them but en, which needs no translation."
        )
    return (
        f"not in the catalogue; known: {one_of(_families())}; text for language models: "
        f"{one_of(text.name for text in TEXTS)}.{nearest(name.lower(), known)} "
        "For your own data give a mapping with `train`, `text` and `label`."
    )


def _families() -> list[str]:
    """The tasks that classify, the languages of one as one."""
    return list(dict.fromkeys(family_of(name) for name in _CATALOGUE))


def _from_files(spec: FileTask) -> Task:
    if spec.kind != "classify":
        raise DataError(_is_text(spec.name))
    files = {split: Path(file) for split in SPLITS if (file := getattr(spec, split)) is not None}
    shares = {split: getattr(spec.holdout, split) for split in ("validation", "test") if split not in files}
    if sum(shares.values()) >= 1:
        raise DataError("task: holdout: the validation and test shares leave nothing to train on.")

    def make(aside: Path) -> Task:
        kinds = _with_kinds(spec, files)
        given = {
            split: read_rows(
                file, spec.text, spec.label, aside / f"{split}.rows", spec.kinds if split in kinds else None
            )
            for split, file in files.items()
        }
        parts = {**given, **by_hash(given["train"], spec.text, shares)}
        names = read_labels(parts, spec.label, spec.labels)
        if spec.metric == "f1" and len(names) != 2:
            raise DataError(f"task: metric f1 is for two classes and this task has {len(names)}; use macro_f1.")
        column = Column(spec.text, spec.label, {name: number for number, name in enumerate(names)}, names)
        splits = {name: make_split(parts[name], column, name, aside) for name in SPLITS}
        source = one_of(file.name for file in files.values())
        return Task(spec.name, spec.metric, names, splits, f"files {source}")

    facts = spec.model_dump(mode="json", exclude={"train", "validation", "test"})
    return prepared([facts, {split: [file.name, file_identity(file)] for split, file in files.items()}], make)


def _with_kinds(spec: FileTask, files: Mapping[str, Path]) -> list[str]:
    """The files that say of what kind their examples are; made-up examples may and real ones not, so one is enough."""
    if spec.kinds is None:
        return []
    found = [split for split, file in files.items() if has_column(file, spec.kinds)]
    held_out = [split for split in ("validation", "test") if split not in files]
    if not any(split in found for split in ("validation", "test")) and not ("train" in found and held_out):
        asked = [file.name for split, file in files.items() if split != "train" or held_out]
        raise DataError(
            f"task: kinds: no column '{spec.kinds}' in {one_of(asked)}; at least one file that validation or test comes from must "
            "have it. Name another column, or leave `kinds` out."
        )
    return found


_CATALOGUE: dict[str, Callable[[], Task]] = {
    "movie-reviews": movie_reviews,
    **{task.name: partial(load_published, task) for task in DEFINITIONS},
    title_task.NAME: title_task.titles,
}
