"""Tasks made of files: which file is which split, what is held out where there is none, which labels there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairtune.core.errors import DataError, one_of
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS
from fairtune.tasks.reading.files import file_identity
from fairtune.tasks.reading.reader import has_column
from fairtune.tasks.reading.rows import read_rows
from fairtune.tasks.splits import (
    by_hash,
    labelled_rows,
    make_split,
    read_labels,
    refuse_regression,
)
from fairtune.tasks.task import SPLITS, Task, prepared


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


def load_file_task(spec: FileTask) -> Task:
    """A task that classifies, from the files that it names.

    Raises:
        DataError: what is wrong, where, and what to do.
    """
    files = {split: SplitFile(Path(file)) for split in SPLITS if (file := getattr(spec, split)) is not None}
    return load_split_files(spec, files)


def load_split_files(spec: FileTask, given: Mapping[str, SplitFile]) -> Task:
    """A task that classifies, from these files, whatever names the task has for them."""
    files = {split: one.file for split, one in given.items()}
    shares = {split: getattr(spec.holdout, split) for split in ("validation", "test") if split not in files}
    if sum(shares.values()) >= 1:
        raise DataError("task: holdout: the validation and test shares leave nothing to train on.")

    def make(aside: Path) -> Task:
        kinds = with_kinds(spec, files)
        read = {
            split: read_rows(
                one.file,
                spec.text,
                spec.label,
                aside / f"{split}.rows",
                spec.kinds if split in kinds else None,
                one.called,
                encoding=spec.encoding,
            )
            for split, one in given.items()
        }
        notes = []
        rows = {}
        for split, found in read.items():
            rows[split], note = labelled_rows(found, spec.label, spec.labels, spec.unlabelled == "skip")
            notes += [note] if note else []
        if spec.labels is None:
            refuse_regression(rows["train"], spec.label)
        held_out = by_hash(rows.pop("train"), spec.text, shares)
        parts = {"train": held_out.pop("train"), **rows, **held_out}
        names, numbers = read_labels(parts, spec.label, spec.labels)
        if not (metric := METRICS[spec.metric]).fits(len(names)):
            raise DataError(
                f"task: metric {spec.metric} is for {metric.classes} and this task has {len(names)}; use {metric.instead}."
            )
        splits = {name: make_split(parts[name], spec.text, spec.label, numbers, name, aside) for name in SPLITS}
        source = one_of(one.name or one.file.name for one in given.values())
        return Task(spec.name, spec.metric, names, splits, f"files {source}", notes=tuple(notes))

    return prepared(
        [spec.identity, {split: [one.name or one.file.name, file_identity(one.file)] for split, one in given.items()}],
        make,
    )


def with_kinds(spec: FileTask, files: Mapping[str, Path]) -> list[str]:
    """The files that say of what kind their examples are; made-up examples may and real ones not, so one is enough."""
    if spec.kinds is None:
        return []
    found = [split for split, file in files.items() if has_column(file, spec.kinds, spec.encoding)]
    held_out = [split for split in ("validation", "test") if split not in files]
    if not any(split in found for split in ("validation", "test")) and not ("train" in found and held_out):
        asked = [file.name for split, file in files.items() if split != "train" or held_out]
        raise DataError(
            f"task: kinds: no column '{spec.kinds}' in {one_of(asked)}; at least one file that validation or test comes from must "
            "have it. Name another column, or leave `kinds` out."
        )
    return found
