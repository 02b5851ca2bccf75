"""Tasks that other people's modules add to the catalogue: declared in one call, checked loudly, read when a study needs them."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.plugins import discover, note
from fairtune.settings.file_task import FileTask
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.definitions import ALIASES, CATALOGUE, TEXTS
from fairtune.tasks.file_tasks import SplitFile, load_split_files
from fairtune.tasks.task import SPLITS, Task

GiveRows = Callable[[], Iterable[Mapping[str, Any]]]
"""Gives the rows of a split from the first, the same ones each time: a mapping from column to value for each."""
GROUP = "fairtune.tasks"
"""The entry points of installed packages that add tasks."""
OWN = frozenset([*CATALOGUE, *ALIASES, *(text.name for text in TEXTS)])


@dataclass(frozen=True)
class RegisteredTask:
    """A task of the catalogue that is not fairtune's own.

    Args:
        spec: columns, labels, metric and shares, as for a task of a user's files.
        given: the file of each split, or what gives its rows.
    """

    name: str
    about: str
    licence: str
    spec: FileTask
    given: Mapping[str, Path | GiveRows]

    @property
    def is_text(self) -> bool:
        """Whether it is text for language models."""
        return self.spec.kind == LANGUAGE_MODEL

    def called(self, split: str) -> str:
        """What a split is read from, in words."""
        one = self.given[split]
        return one.name if isinstance(one, Path) else f"rows of {one.__module__}.{_name_of(one)}"


_registered: dict[str, RegisteredTask] = {}


def registered_tasks() -> dict[str, RegisteredTask]:
    """The tasks that were registered, by name, in the order of their coming; those of installed plug-ins too.

    Raises:
        PluginError: an installed plug-in cannot be used.
    """
    discover(GROUP)
    return dict(_registered)


def register_task(
    name: str,
    *,
    about: str,
    licence: str,
    train: Path | str | GiveRows,
    validation: Path | str | GiveRows | None = None,
    test: Path | str | GiveRows | None = None,
    labels: Sequence[str] = (),
    text: str | Sequence[str] = "text",
    label: str = "label",
    metric: str = "accuracy",
    kinds: str | None = None,
    holdout: Mapping[str, float] | None = None,
    kind: str = "classify",
) -> None:
    """Add a task to the catalogue. Refuses anything that would later surprise a user; nothing is read before the task is loaded.

    Args:
        name: what a study calls it, `task: NAME`.
        about: one line, which `fairtune tasks` shows.
        train: a file, a folder of shards, or a function that gives rows; so too `validation` and `test`, which are held out of
            it by a hash of the text where they are absent.
        labels: the values in the column `label`, in order of their class number.
        text: the column with the text, or the two of a pair.
        metric: what selects checkpoints and decides verdicts.
        kinds: the column that says of what kind an example is, by which mistakes are told apart.
        holdout: the shares of `validation` and `test` that are held out.
        kind: `classify`, or `language_model` for text, which is read from files and has no labels.

    Raises:
        ValueError, TypeError: what is wrong with the declaration.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise ValueError(f"task name {name!r}: use lower-case letters, digits, - and _")
    if name in _registered:
        raise ValueError(f"task {name!r} is registered twice")
    if name in OWN:
        raise ValueError(f"task {name!r} is in fairtune's own catalogue; choose another name")
    for what, value in (("about", about), ("licence", licence)):
        if not value.strip() or "\n" in value.strip():
            raise ValueError(f"task {name!r}: {what} must be one line, which `fairtune tasks` shows")
    given = {
        split: _checked_source(name, split, one, kind)
        for split, one in zip(SPLITS, (train, validation, test), strict=True)
        if one is not None
    }
    fields: dict[str, Any] = {split: str(one) if isinstance(one, Path) else "rows" for split, one in given.items()}
    fields |= {"name": name, "kind": kind, "text": text if isinstance(text, str) else list(text)}
    fields |= {} if holdout is None else {"holdout": dict(holdout)}
    if kind != LANGUAGE_MODEL:
        allowed = [known for known, facts in METRICS.items() if facts.kind == "classify"]
        if metric not in allowed:
            raise ValueError(f"task {name!r}: metric {metric!r} is unknown; allowed: {one_of(allowed)}")
        if len(labels) < 2 or isinstance(labels, str):
            raise ValueError(
                f"task {name!r}: labels must list the values of column {label!r} in order of their class number"
            )
        if not METRICS[metric].fits(len(labels)):
            raise ValueError(
                f"task {name!r}: metric {metric} is for {METRICS[metric].classes} and labels has {len(labels)}; "
                f"use {METRICS[metric].instead}"
            )
        fields |= {"label": label, "labels": list(labels), "metric": metric}
        fields |= {} if kinds is None else {"kinds": kinds}
    elif labels or kinds is not None:
        raise ValueError(f"task {name!r}: text for language models has no labels and no kinds")
    try:
        spec = FileTask.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "task"
        raise ValueError(f"task {name!r}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    note("task", name, getattr(train, "__module__", ""), lambda: _registered.pop(name, None))
    _registered[name] = RegisteredTask(name, about.strip(), licence.strip(), spec, given)


def unregister_task(name: str) -> None:
    """Take a registered task out again, as tests of a plug-in do."""
    del _registered[name]


def load_registered(task: RegisteredTask) -> Task:
    """A registered task that classifies, with its data.

    Raises:
        DataError: its files are not there, its function fails or gives something that is not a row; what is wrong with the data.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for split, one in task.given.items():
            if isinstance(one, Path):
                files[split] = SplitFile(one)
            else:
                file = Path(folder) / f"{split}.jsonl"
                _write_rows(task, split, one, file)
                files[split] = SplitFile(file, f"task '{task.name}', {split} rows", task.called(split))
        return load_split_files(task.spec, files)


def _checked_source(name: str, split: str, one: Path | str | GiveRows, kind: str) -> Path | GiveRows:
    if isinstance(one, str | Path):
        if not Path(one).is_absolute():
            raise ValueError(
                f"task {name!r}: {split}: {str(one)!r} is a relative path, which depends on the working directory; "
                "give `Path(__file__).parent / ...`"
            )
        return Path(one)
    if not callable(one):
        raise TypeError(f"task {name!r}: {split}: give a file, a folder or a function that gives rows, not {one!r}")
    if kind == LANGUAGE_MODEL:
        raise ValueError(f"task {name!r}: {split}: text for language models is read from files; write the rows to one")
    return one


def _write_rows(task: RegisteredTask, split: str, give: GiveRows, file: Path) -> None:
    """What a function gives, in a file like any other, so that it is checked, split and fingerprinted like any other."""
    where, spec = f"task '{task.name}', {split} rows", task.spec
    with file.open("w", encoding="utf-8") as handle:
        for number, row in enumerate(_rows(task, split, give), start=1):
            if not isinstance(row, Mapping):
                raise DataError(f"{where}: row {number} is {str(row)[:60]!r}; a row is a mapping from column to value.")
            lacking = [column for column in (*spec.text, spec.label) if column not in row]
            if lacking:
                raise DataError(f"{where}: row {number}: no column '{lacking[0]}'; columns: {one_of(map(str, row))}.")
            columns = [*spec.text, spec.label, *([spec.kinds] if spec.kinds in row else [])]
            try:
                handle.write(json.dumps({column: row[column] for column in columns if column is not None}) + "\n")
            except (TypeError, ValueError) as error:
                raise DataError(f"{where}: row {number} holds what is neither text nor number: {error}.") from None


def _rows(task: RegisteredTask, split: str, give: GiveRows) -> Iterator[Mapping[str, Any]]:
    try:
        yield from give()
    except FairtuneError:
        raise
    except Exception as error:  # somebody else's code
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            f"task '{task.name}': its {split} rows cannot be had: {task.called(split)} failed ({type(error).__name__}: {reason})."
        ) from error


def _name_of(give: GiveRows) -> str:
    return str(getattr(give, "__qualname__", type(give).__name__))
