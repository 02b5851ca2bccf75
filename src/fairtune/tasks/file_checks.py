"""What is wrong with the files of a task, all of it at once, found by looking at their beginnings: before anything is kept.

It is said in the words in which loading the task would say it, by the same code; loading stops at the first problem.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairtune.core.errors import DataError
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.file_tasks import with_kinds
from fairtune.tasks.reading.columns import NoColumnError
from fairtune.tasks.reading.files import require_file, shards
from fairtune.tasks.reading.reader import RowBatch, shard_batches
from fairtune.tasks.reading.rows import Rows, collect
from fairtune.tasks.splits import by_hash, count_labels, label_problems, labelled_rows, refuse_regression
from fairtune.tasks.task import SPLITS

MOST_ROWS = 200_000
MOST_BYTES = 1 << 26
"""How much of a file is looked at: what takes a second or two."""
FilePlaces = tuple[str, str]
"""A field of the task, and what is wrong there."""


def file_problems(spec: FileTask) -> list[FilePlaces]:
    """Everything that is wrong with a task's files, as far as their beginnings show it; paths are taken as they are."""
    files = {split: Path(file) for split in SPLITS if (file := getattr(spec, split)) is not None}
    problems = [found for split, file in files.items() for found in _column_problems(spec, split, file)]
    shares = {split: getattr(spec.holdout, split) for split in ("validation", "test") if split not in files}
    if sum(shares.values()) >= 1:
        problems.append(("holdout", "the validation and test shares leave nothing to train on."))
    if problems or spec.kind == LANGUAGE_MODEL:
        return problems
    try:
        with_kinds(spec, files)
    except DataError as error:
        problems.append(("kinds", str(error).removeprefix("task: kinds: ")))
    with tempfile.TemporaryDirectory() as aside:
        looked = {split: _Look(spec, file, Path(aside) / f"{split}.rows") for split, file in files.items()}
        problems += [(split, message) for split, look in looked.items() for message in look.problems]
        rows = {split: look.rows for split, look in looked.items() if look.rows is not None}
        if len(rows) == len(files) and all(look.whole for look in looked.values()):
            problems += _labels(spec, rows, shares)
    return list(dict.fromkeys(problems))


def _column_problems(spec: FileTask, split: str, file: Path) -> Iterator[FilePlaces]:
    """That a file is not there or cannot be read, or each column that it lacks."""
    wanted = spec.text if spec.kind == LANGUAGE_MODEL else (*spec.text, spec.label)
    try:
        require_file(file)
        for shard in shards(file):
            require_file(shard)
    except DataError as error:
        yield split, str(error)
        return
    for column in dict.fromkeys(wanted):
        try:
            next(shard_batches(file, [column], "paragraph", spec.encoding), None)
        except NoColumnError as error:
            yield split, str(error)
        except DataError as error:
            yield split, str(error)
            return


class _Look:
    """The beginning of a file.

    Attributes:
        problems: what is wrong there.
        whole: whether it is all of the file.
        rows: those with a label; None where they cannot be read.
    """

    def __init__(self, spec: FileTask, file: Path, aside: Path) -> None:
        self.problems: list[str] = []
        self.whole = True
        self.rows: Rows | None = None
        columns = list(dict.fromkeys([*spec.text, spec.label]))
        try:
            read = self._beginning(shard_batches(file, columns, encoding=spec.encoding))
            found = collect(file, read, spec.text, spec.label, aside)
        except DataError as error:
            self.problems.append(str(error))
            return
        for text in spec.text:
            try:
                found.refuse_missing(text, "text")
            except DataError as error:
                self.problems.append(str(error))
        try:
            rows, _ = labelled_rows(found, spec.label, spec.labels, spec.unlabelled == "skip")
            if spec.labels is None and str(file) == str(spec.train):
                refuse_regression(rows, spec.label)
            self.rows = rows
        except DataError as error:
            self.problems.append(str(error))

    def _beginning(self, batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
        rows = size = 0
        for batch in batches:
            if rows >= MOST_ROWS or size >= MOST_BYTES:
                self.whole = False
                return
            yield batch
            rows += len(batch)
            size += batch.table.nbytes if batch.table is not None else sum(map(len, map(str, batch.rows)))


def _labels(spec: FileTask, rows: dict[str, Rows], shares: dict[str, float]) -> Sequence[FilePlaces]:
    """What is wrong between the labels of the splits, held out as they will be."""
    try:
        held_out = by_hash(rows["train"], spec.text, shares)
        parts = {"train": held_out.pop("train"), **{s: r for s, r in rows.items() if s != "train"}, **held_out}
        found = count_labels(parts, spec.label, spec.labels)
    except DataError as error:
        return [("train", str(error))]
    problems = [
        (split if split in rows or split == "labels" else "train", message)
        for split, message in label_problems(parts, spec.label, spec.labels, found)
    ]
    metric, classes = METRICS[spec.metric], len(found.names)
    if classes > 1 and not metric.fits(classes):
        problems.append(
            ("metric", f"{spec.metric} is for {metric.classes} and this task has {classes}; use {metric.instead}.")
        )
    return problems
