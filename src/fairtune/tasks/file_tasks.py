"""Tasks made of files: which file is which split, what is held out where there is none, which labels there are."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.problems import Problems, TaskError
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.labels import refuse_scores
from fairtune.tasks.reading.reader import first_columns
from fairtune.tasks.reading.rows import Rows, read_rows
from fairtune.tasks.splits import by_hash, labelled_rows, make_splits
from fairtune.tasks.stores import file_texts
from fairtune.tasks.task import Task, prepared


@dataclass(frozen=True)
class SplitFile:
    """The file of a split.

    Args:
        called: what messages call it, where it is not the user's own.
        name: what reports call it; its file name if empty.
    """

    file: Path
    called: str | None = None
    name: str = ""


def check_file_task(spec: FileTask) -> None:
    """Refuse a task whose files cannot be used; of text for language models only the beginnings are looked at.

    Raises:
        TaskError: everything that is wrong.
    """
    if spec.kind != LANGUAGE_MODEL:
        load_file_task(spec)
        return
    problems = Problems()
    for split, file in spec.files.items():
        with problems.about(split):
            next(file_texts(file, spec.text[0], spec.encoding), None)
    problems.refuse()


def load_file_task(spec: FileTask) -> Task:
    """A task that classifies, from the files that it names.

    Raises:
        TaskError: everything that is wrong.
    """
    return load_split_files(spec, {split: SplitFile(file) for split, file in spec.files.items()})


def load_split_files(spec: FileTask, given: Mapping[str, SplitFile]) -> Task:
    """A task that classifies, from these files, whatever names the task has for them."""
    problems, held = Problems(), {}
    for split, one in given.items():
        with problems.about(split):
            held[split] = [one.name or one.file.name, file_identity(one.file)]
    if not problems.found:
        return prepared([spec.identity, held], lambda aside: _read(spec, given, aside))
    with tempfile.TemporaryDirectory() as aside, problems.about("train"):
        _read_rows(spec, {split: given[split] for split in held}, Path(aside))
    raise TaskError(problems.found)


def _read(spec: FileTask, given: Mapping[str, SplitFile], aside: Path) -> Task:
    rows, notes = _read_rows(spec, given, aside)
    parts = rows | by_hash(rows["train"], spec.text, spec.shares)
    names, splits = make_splits(parts, spec.text, spec.label, spec.labels, aside)
    if not (metric := METRICS[spec.metric]).fits(len(names)):
        wrong = f"{spec.metric} is for {metric.classes} and this task has {len(names)}; use {metric.instead}."
        raise TaskError([("metric", wrong)])
    source = one_of(one.name or one.file.name for one in given.values())
    return Task(spec.name, spec.metric, names, splits, f"files {source}", notes=notes)


def _read_rows(spec: FileTask, given: Mapping[str, SplitFile], aside: Path) -> tuple[dict[str, Rows], tuple[str, ...]]:
    """The rows of each file that have a label, and what to tell of the others."""
    problems, found, notes = Problems(), {}, []
    kinds: list[str] = []
    with problems.about("kinds"):
        kinds = _with_kinds(spec, given)
    for split, one in given.items():
        with problems.about(split):
            kind = spec.kinds if split in kinds else None
            rows = read_rows(one.file, spec.text, spec.label, aside / f"{split}.rows", kind, one.called, spec.encoding)
            for text in spec.text:
                with problems.about(split):
                    rows.refuse_missing(text, "text")
            found[split], note = labelled_rows(rows, spec.label, spec.labels, spec.unlabelled == "skip")
            notes += [note] if note else []
            if split == "train" and spec.labels is None:
                refuse_scores(one.called or one.file, spec.label, found[split].counts(spec.label))
    problems.refuse()
    return found, tuple(notes)


def _with_kinds(spec: FileTask, given: Mapping[str, SplitFile]) -> list[str]:
    """The files that say of what kind their examples are; made-up examples may and real ones not, so one is enough."""
    if spec.kinds is None:
        return []
    found = [split for split, one in given.items() if spec.kinds in first_columns(one.file, spec.encoding)]
    reported = {split if split in given else "train" for split in ("validation", "test")}
    if not reported & set(found):
        asked = one_of(one.file.name for split, one in given.items() if split in reported)
        raise DataError(
            f"no column '{spec.kinds}' in {asked}; at least one file that validation or test comes from must have it. Name "
            "another column, or leave `kinds` out."
        )
    return found
