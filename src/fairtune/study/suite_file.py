"""From a suite file, a profile and overrides to the studies it stands for: all problems at once, each with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.core.errors import FairtuneError, nearest
from fairtune.core.plugin_files import ConsentNeeded
from fairtune.settings.file_task import FileTask
from fairtune.settings.values import LONGEST_NAME
from fairtune.study.allowed import ruled_by
from fairtune.study.changes import apply_profile
from fairtune.study.messages import problems_of
from fairtune.study.problems import MOST_SHOWN, Problem, StudyError, dotted
from fairtune.study.schema import Study
from fairtune.study.source import StudySource, Written, expanded, faults, plain_copy, read_source
from fairtune.study.study_file import load_study, take_changes
from fairtune.study.suite_checks import cell_problems
from fairtune.study.suite_schema import OWN_FIELDS, ListedModel, ListedStudy, ListedTask, SuiteFile, suite_json_schema
from fairtune.study.yaml_tree import Path

MOST_CELLS = 500
ONE_STUDY = ("study", "tasks", "models")
"""Fields of a suite that is one study over tasks and models."""


@dataclass(frozen=True)
class SuiteStudy:
    """One study of a suite: a cell of its table.

    Args:
        study: as the file, its profile and all changes have it.
        source: what it was read from; `load_checked` and `run_study` take it.
        group: what the suite file says it belongs to.
        where: the line of the suite file that names it.
    """

    study: Study
    source: Written
    group: str | None
    where: str


@dataclass(frozen=True)
class Suite:
    """A suite, read and checked.

    Args:
        label: what messages call its file.
    """

    name: str
    studies: tuple[SuiteStudy, ...]
    label: str

    @property
    def reference(self) -> str:
        """The arm that all others are measured against, in every study."""
        return self.studies[0].study.compare.to


@dataclass(frozen=True)
class _Cell:
    """What a cell is made of, before it is read."""

    path: Path
    group: str | None
    written: Written


def load_suite(source: StudySource, overrides: Sequence[str] = (), profile: str | None = None) -> Suite:
    """Read a suite and every study of it; data and models are not looked at.

    Args:
        source: a YAML file, or the same as a mapping.
        overrides: changes of the form `a.b=c` to every study, applied last.
        profile: the name of one of the suite's profiles.

    Raises:
        StudyError: with every problem found, in the suite and in its studies.
    """
    written = read_source(source, "suite")
    if "suite" not in written.data and "study" in written.data and "arms" in written.data:
        raise StudyError(
            [
                Problem(
                    written.label,
                    "",
                    "this is a study, not a suite; `fairtune run` runs it, and a suite lists it under `studies`",
                )
            ]
        )
    if profile is not None:
        apply_profile(written, profile, "suite")
    origins = written
    suite = _validated(written, origins)
    cells, problems = _gather(suite, written, origins)
    found = []
    for cell in cells:
        try:
            study = load_study(cell.written, overrides)
        except FairtuneError as error:
            problems += _told(error, origins.where(cell.path))
            continue
        kept = cell.written.copy()
        take_changes(kept, overrides)
        found.append((cell.path, SuiteStudy(study, kept, cell.group, origins.where(cell.path))))
    if not problems:
        problems = cell_problems([(dotted(path), one.where, one.study) for path, one in found], written.label)
    if problems:
        raise StudyError(list(dict.fromkeys(problems)))
    return Suite(suite.suite, tuple(one for _, one in found), written.label)


def _validated(written: Written, origins: Written) -> SuiteFile:
    """The suite's own fields; where it is one study over tasks and models, other fields are that study's."""
    data = written.data
    unfit = [Problem(origins.where(path), dotted(path), message) for path, message in faults(data)][:MOST_SHOWN]
    if unfit:
        raise StudyError(unfit)
    inline = "studies" not in data and data.get("study") is None and ("tasks" in data or "models" in data)
    own = {name: value for name, value in data.items() if name in OWN_FIELDS or not inline}
    try:
        suite = SuiteFile.model_validate(own)
    except ValidationError as error:
        with ruled_by(suite_json_schema()):
            raise StudyError(problems_of(error.errors(), origins)) from None
    if problems := _shape_problems(data, origins):
        raise StudyError(problems)
    return suite


def _shape_problems(data: Mapping[str, Any], origins: Written) -> list[Problem]:
    """A suite that is neither of its two forms, or both."""
    one = [name for name in ONE_STUDY if data.get(name)]
    if data.get("studies") and one:
        message = (
            f"`studies` lists whole studies, and `{one[0]}` is for one study over tasks and models; keep one of them"
        )
        return [Problem(origins.where((one[0],)), one[0], message)]
    if data.get("studies") or data.get("tasks") or data.get("models"):
        if data.get("profile") is not None and not data.get("studies") and not data.get("study"):
            message = "there is no study file to read with it: the study's fields stand here; put the changes under `profiles`"
            return [Problem(origins.where(("profile",)), "profile", message)]
        return []
    close = [nearest(name, ("studies", "tasks", "models")) for name in data if name not in OWN_FIELDS]
    hint = next((text for text in close if text), "")
    message = f"found neither `studies` nor `tasks` and `models`, or they are empty; a suite needs one of them.{hint}"
    return [Problem(origins.where(("studies",)), "", message)]


def _gather(suite: SuiteFile, written: Written, origins: Written) -> tuple[list[_Cell], list[Problem]]:
    """What each cell is read from, and what could not be found or changed."""
    cells: list[_Cell] = []
    problems: list[Problem] = []
    makers = _listed(suite, written) if suite.studies else _crossed(suite, written, origins)
    while True:
        try:
            made = next(makers, None)
        except StudyError as error:  # of the suite as a whole
            return cells, [*problems, *error.problems]
        if made is None:
            return cells, problems
        path, group, read = made
        try:
            cells.append(_Cell(path, group, read()))
        except FairtuneError as error:
            problems += _told(error, origins.where(path))


def _listed(suite: SuiteFile, written: Written) -> Iterator[Any]:
    """The studies of a list, each to be read."""
    for place, entry in enumerate(suite.studies):
        listed = entry if isinstance(entry, ListedStudy) else ListedStudy(file=entry)
        yield (
            ("studies", place),
            listed.group,
            lambda listed=listed, place=place: _read(listed, suite.profile, written, ("studies", place)),
        )


def _crossed(suite: SuiteFile, written: Written, origins: Written) -> Iterator[Any]:
    """One study for each task and model, each to be read."""
    tasks: list[ListedTask | None] = [
        one if isinstance(one, ListedTask) else ListedTask(task=one) for one in suite.tasks
    ]
    models: list[ListedModel | None] = [
        one if isinstance(one, ListedModel) else ListedModel(model=one) for one in suite.models
    ]
    tasks, models = tasks or [None], models or [None]
    if len(tasks) * len(models) > MOST_CELLS:
        raise StudyError(
            [Problem(written.label, "tasks", f"{len(tasks) * len(models)} studies; at most {MOST_CELLS} are read")]
        )
    problems = [
        *_nameless("tasks", [_task_name(one) for one in tasks], origins),
        *_nameless("models", [_model_name(one) for one in models], origins),
    ]
    if problems:
        raise StudyError(problems)
    for first, task in enumerate(tasks):
        for second, model in enumerate(models):
            path = ("tasks", first) if task is not None else ("models", second)
            group = None if model is None else model.group
            yield (
                path,
                group,
                lambda task=task, model=model, first=first, second=second: _cross(
                    suite, written, (task, first), (model, second)
                ),
            )


def _nameless(field: str, names: Sequence[str | None], origins: Written) -> list[Problem]:
    """Entries that have no name of their own, or the same one."""
    found: list[Problem] = []
    for place, name in enumerate(names):
        path: Path = (field, place)
        if name is None:
            found.append(
                Problem(origins.where(path), dotted(path), "needs a `name`, after which its studies are called")
            )
        elif name in names[:place]:
            first = dotted((field, names.index(name)))
            message = f"'{name}' is {first} already; name each once, or give one of them another `name`"
            found.append(Problem(origins.where(path), dotted(path), message))
    return found


def _read(listed: ListedStudy, profile: str | None, suite: Written, path: Path) -> Written:
    """A study file with its profile and changes."""
    file = expanded(listed.file)
    found = read_source(file if file.is_absolute() else _shorter(suite, file))
    if "suite" in found.data and "arms" not in found.data:
        raise FairtuneError(f"{found.label} is a suite, and a suite holds studies; list its studies here instead.")
    chosen = listed.profile or profile
    try:
        take_changes(found, (), chosen)
    except StudyError as error:
        if listed.profile is None and chosen is not None and error.problems[0].where == f"--profile {chosen}":
            raise FairtuneError(f"{error.problems[0].message} The suite's `profile` is '{chosen}'.") from None
        raise
    _change(found, listed.set, suite, path)
    return found


def _shorter(suite: Written, file: FilePath) -> FilePath:
    """A file beside the suite, with no more of a path than the suite's own was typed with."""
    home = FilePath(suite.label).parent
    return (home if home.resolve() == suite.base.resolve() else suite.base) / file


def _cross(suite: SuiteFile, written: Written, task: tuple[Any, int], model: tuple[Any, int]) -> Written:
    """The one study with a task and a model of the lists."""
    if suite.study is not None:
        listed = suite.study if isinstance(suite.study, ListedStudy) else ListedStudy(file=suite.study)
        found = _read(listed, suite.profile, written, ("study",))
    else:
        data = {name: value for name, value in written.data.items() if name not in OWN_FIELDS}
        places = {path: where for path, where in written.places.items() if not path or path[0] not in OWN_FIELDS}
        found = Written(plain_copy(data), places, written.label, written.base)
        take_changes(found)
    parts = [suite.suite]
    for name, (entry, place), word in (("task", task, _task_name), ("model", model, _model_name)):
        if entry is None:
            continue
        path: Path = (f"{name}s", place)
        value = getattr(entry, name)
        found.data[name] = value if isinstance(value, str) else value.model_dump(mode="json", exclude_unset=True)
        if isinstance(value, FileTask):
            found.data[name]["name"] = entry.name
        _place(found, (name,), written.places.get(path, written.label))
        _change(found, entry.set, written, path)
        parts.append(word(entry) or "")
    found.data["study"] = "-".join(parts)[:LONGEST_NAME]
    found.data.pop("profiles", None)
    _place(found, ("study",), written.places.get(("suite",), written.label))
    return found


def _place(study: Written, path: Path, where: str) -> None:
    """Let a value stand where the suite has it."""
    for old in [one for one in study.places if one[: len(path)] == path]:
        del study.places[old]
    study.places[path] = where


def _change(study: Written, changes: Mapping[str, Any], suite: Written, path: Path) -> None:
    """Make the changes of an entry, which messages find in the suite file."""
    for key, value in changes.items():
        where = suite.places.get((*path, "set", key), suite.label)
        take_changes(study, [f"{key}={json.dumps(value)}"], origin=where)


def _task_name(entry: ListedTask | None) -> str | None:
    if entry is None:
        return ""
    return entry.name or (_word(entry.task) if isinstance(entry.task, str) else None)


def _model_name(entry: ListedModel | None) -> str | None:
    if entry is None:
        return ""
    return entry.name or (_word(entry.model.rpartition("/")[2]) if isinstance(entry.model, str) else None)


def _word(text: str) -> str:
    """A name of a folder made of a task's or a model's."""
    return re.sub(r"[^A-Za-z0-9_+-]+", "-", text).strip("-") or "x"


def _told(error: FairtuneError, where: str) -> list[Problem]:
    """A study's problems: those that have a line keep it, others get that of the suite."""
    if isinstance(error, ConsentNeeded):
        raise error
    if isinstance(error, StudyError):
        return [
            one if one.where and not one.where.startswith("--profile") else Problem(where, one.path, one.message)
            for one in error.problems
        ]
    return [Problem(where, "", str(error))]
