"""Tasks that other people's modules add to the catalogue: declared in one call, checked loudly, read when a study needs them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import DataError, FairtuneError
from fairtune.core.plugins import discover, note
from fairtune.settings.file_task import FileTask
from fairtune.settings.values import LANGUAGE_MODEL
from fairtune.tasks.definitions import ALIASES, CATALOGUE, TEXTS
from fairtune.tasks.file_tasks import SplitFile, load_split_files
from fairtune.tasks.task import Task

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
        if isinstance(one, Path):
            return one.name
        return f"rows of {one.__module__}.{getattr(one, '__qualname__', type(one).__name__)}"


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
    if name in _registered or name in OWN:
        where = "is registered twice" if name in _registered else "is in fairtune's own catalogue; choose another name"
        raise ValueError(f"task {name!r} {where}")
    for what, value in (("about", about), ("licence", licence)):
        if not value.strip() or "\n" in value.strip():
            raise ValueError(f"task {name!r}: {what} must be one line, which `fairtune tasks` shows")
    sources = {"train": train, "validation": validation, "test": test}
    given = {split: _checked_source(name, split, one, kind) for split, one in sources.items() if one is not None}
    fields: dict[str, Any] = {split: str(one) if isinstance(one, Path) else "rows" for split, one in given.items()}
    fields |= {
        "name": name,
        "kind": kind,
        "text": text if isinstance(text, str) else list(text),
        "holdout": holdout or {},
    }
    if labels or kind != LANGUAGE_MODEL:
        given_labels = labels if isinstance(labels, str) else list(labels)
        fields |= {"label": label, "labels": given_labels, "metric": metric, "kinds": kinds}
    try:
        spec = FileTask.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "task"
        raise ValueError(f"task {name!r}: {place}: {first['msg'].removeprefix('Value error, ')}") from None
    note("task", name, getattr(train, "__module__", None) or "", lambda: _registered.pop(name, None))
    _registered[name] = RegisteredTask(name, about.strip(), licence.strip(), spec, given)


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
    """The columns that count of what a function gives, in a file that is checked, split and fingerprinted like any other."""
    columns, kinds, number = [*task.spec.text, task.spec.label], task.spec.kinds, 1
    with file.open("w", encoding="utf-8") as handle:
        try:
            for row in give():
                some = [*columns, kinds] if kinds and kinds in row else columns
                handle.write(json.dumps({column: row[column] for column in some}) + "\n")
                number += 1
        except FairtuneError:
            raise
        except Exception as error:  # somebody else's code
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise DataError(
                f"task '{task.name}', {split} rows cannot be had: {task.called(split)} failed at row {number} "
                f"({type(error).__name__}: {reason}). A row is a mapping from column to text or number."
            ) from error
