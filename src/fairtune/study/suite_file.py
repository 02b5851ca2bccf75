"""Suites: several studies with the same arms, listed by file, or one study over tasks and models."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.core.plugins import ConsentNeeded
from fairtune.models.presets import parse_preset, preset_name
from fairtune.settings.file_task import FileTask
from fairtune.settings.model import Model, PresetModel
from fairtune.settings.values import LONGEST_NAME, LONGEST_TEXT, Name, Place, Section
from fairtune.study.allowed import spelt_out
from fairtune.study.changes import apply_profile
from fairtune.study.messages import problems_of
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.schema import MOST_PROFILES, Study, TaskName, study_json_schema
from fairtune.study.source import StudySource, Written, expanded, plain_copy, read_source
from fairtune.study.study_file import check_file, find_absences, load_study, take_changes
from fairtune.study.yaml_tree import Path
from fairtune.tasks.definitions import ALIASES

MOST_STUDIES, MOST_CHANGES, MOST_TASKS, MOST_MODELS, MOST_CELLS = 200, 100, 100, 50, 500
File = Annotated[Place, Field(title="a study file")]
ProfileName = Annotated[str, Field(max_length=LONGEST_NAME)]
Changes = Annotated[
    dict[Annotated[str, Field(max_length=LONGEST_TEXT)], Any],
    Field(max_length=MOST_CHANGES, title="a mapping of fields to values, such as {train.epochs: 2}"),
]
Group = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="a text")]
GROUP_HELP = (
    "What it belongs to, such as encoder; means are also shown by group. If absent, whether it classifies or generates, and "
    "whether it starts from a checkpoint."
)


class ListedStudy(Section):
    """One study of a suite."""

    file: File = Field(description="The study file; a relative path starts at the suite file.")
    profile: ProfileName | None = Field(
        None, description="The profile of that file to read it with; if absent, the suite's `profile`."
    )
    set: Changes = Field({}, description="Changes to that study, made last, as `--set` makes them.")
    group: Group | None = Field(None, description=GROUP_HELP)


class ListedTask(Section):
    """One task of a suite."""

    task: TaskName | FileTask = Field(description="A task of the catalogue by name, or your own files.")
    name: Name | None = Field(None, description="What its studies are called after; needed for your own files.")
    set: Changes = Field({}, description="Changes to the study for this task alone.")


class ListedModel(Section):
    """One model of a suite."""

    model: Model = Field(description="A model as a study's `model` names it.")
    name: Name | None = Field(None, description="What its studies are called after; needed for a preset with settings.")
    set: Changes = Field({}, description="Changes to the study for this model alone.")
    group: Group | None = Field(None, description=GROUP_HELP)


def _either(name: Any, fields: type[Section]) -> Any:
    """An entry with its fields, or its first field alone."""
    first = next(iter(fields.model_fields))
    return Annotated[
        name | fields,
        AfterValidator(lambda value: fields.model_validate({first: value}) if isinstance(value, str) else value),
    ]


class SuiteFile(Section):
    """A suite: tasks x models x the same arms."""

    suite: Name = Field(description="Name of the suite; its page is kept under this name.")
    studies: tuple[_either(File, ListedStudy), ...] = Field(  # type: ignore[valid-type]
        (),
        max_length=MOST_STUDIES,
        description="The studies, each a study file, or a file with its profile and changes.",
    )
    study: _either(File, ListedStudy) | None = Field(  # type: ignore[valid-type]
        None, description="One study file, taken for each of `tasks` and `models`; if absent, its fields stand here."
    )
    tasks: tuple[_either(TaskName, ListedTask), ...] = Field(  # type: ignore[valid-type]
        (), max_length=MOST_TASKS, description="The tasks on which the one study is made."
    )
    models: tuple[_either(Place, ListedModel), ...] = Field(  # type: ignore[valid-type]
        (), max_length=MOST_MODELS, description="The models with which it is made; if absent, the study's own."
    )
    profile: ProfileName | None = Field(
        None, description="The profile that every study file of the suite is read with, unless it names its own."
    )
    profiles: dict[ProfileName, dict[str, Any]] = Field(
        {}, max_length=MOST_PROFILES, description="Named sets of changes to this file, chosen with --profile."
    )


OWN_FIELDS = tuple(SuiteFile.model_fields)


@cache
def _schema() -> dict[str, Any]:
    return SuiteFile.model_json_schema()


def suite_json_schema() -> dict[str, Any]:
    """For editors: with the fields of a study too, which stand in a suite file that is one study over tasks and models."""
    own, study = _schema(), study_json_schema()
    merged = {name: {**study[name], **own[name]} for name in ("$defs", "properties")}
    return {**study, **own, **merged, "title": "fairtune suite"}


@dataclass(frozen=True)
class SuiteStudy:
    """One study of a suite: a cell of its table.

    Args:
        study: as the file, its profile and all changes have it.
        source: what it was read from; `load_checked` and `run_study` take it.
        group: what the suite file says it belongs to.
    """

    study: Study
    source: Written
    group: str | None


@dataclass(frozen=True)
class Suite:
    """A suite, read and checked, with the profiles that its file has."""

    name: str
    studies: tuple[SuiteStudy, ...]
    profiles: tuple[str, ...]

    @property
    def reference(self) -> str:
        """The arm that all others are measured against, in every study."""
        return self.studies[0].study.compare.to


Entry = ListedTask | ListedModel
Cell = tuple[Path, ListedStudy | None, tuple[tuple[Path, Entry], ...]]
"""Where a study is named, its file (without, the suite's own fields are it), and its task and model of the suite's lists."""


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
    if "suite" not in written.data and {"study", "arms"} <= written.data.keys():
        message = "this is a study, not a suite; `fairtune run` runs it, and a suite lists it under `studies`"
        raise StudyError([Problem(written.label, "", message)])
    if profile is not None:
        apply_profile(written, profile, "suite")
    suite = _validated(written)
    problems, found, places = list[Problem](), dict[str, SuiteStudy](), dict[str, str]()
    for path, listed, parts in _cells(suite, written):
        where = written.where(path)
        try:
            own = _written(suite, listed, parts, path, written)
            study = load_study(own, overrides)
            take_changes(own, overrides)
        except ConsentNeeded:
            raise
        except FairtuneError as error:  # what has no line of its own gets that of the suite
            own_problems = error.problems if isinstance(error, StudyError) else [Problem("", "", str(error))]
            lineless = [one.where.startswith("--profile") or not one.where for one in own_problems]
            problems += [replace(p, where=where) if no else p for p, no in zip(own_problems, lineless, strict=True)]
        else:
            group = next((one.group for _, one in parts if isinstance(one, ListedModel)), None)
            key = ", ".join(dotted(one) for one, _ in parts) or dotted(path)
            found[key] = SuiteStudy(study, own, listed.group if listed and not parts else group)
            places[key] = where
    problems = problems or [Problem(places.get(key, written.label), key, text) for key, text in _cell_problems(found)]
    if problems:
        raise StudyError(list(dict.fromkeys(problems)))
    return Suite(suite.suite, tuple(found.values()), tuple(suite.profiles))


def _validated(written: Written) -> SuiteFile:
    """The suite's own fields; where it is one study over tasks and models, other fields are that study's."""
    data = written.data
    inline = "studies" not in data and data.get("study") is None and ("tasks" in data or "models" in data)
    try:
        suite = SuiteFile.model_validate({name: data[name] for name in data if name in OWN_FIELDS or not inline})
    except ValidationError as error:
        raise StudyError(problems_of(error.errors(), written, spelt_out(_schema()))) from None
    crossed = [name for name in ("study", "tasks", "models") if data.get(name)]
    field, message = "", ""
    if suite.studies and crossed:
        field, message = (
            crossed[0],
            f"`studies` lists whole studies, and `{crossed[0]}` is for one study over tasks and models",
        )
        message += "; keep one of them"
    elif not (suite.studies or suite.tasks or suite.models):
        close = [nearest(name, ("studies", "tasks", "models")) for name in data if name not in OWN_FIELDS]
        message = "found neither `studies` nor `tasks` and `models`, or they are empty; a suite needs one of them."
        message += next(filter(None, close), "")
    elif suite.profile is not None and not suite.studies and suite.study is None:
        field, message = "profile", "there is no study file to read with it: the study's fields stand here"
        message += "; put the changes under `profiles`"
    elif (count := max(1, len(suite.tasks)) * max(1, len(suite.models))) > MOST_CELLS:
        field, message = "tasks", f"{count} studies; at most {MOST_CELLS} are read"
    if message:
        raise StudyError([Problem(written.where((field or "studies",)), field, message)])
    return suite


def _cells(suite: SuiteFile, written: Written) -> list[Cell]:
    """Every study of the list, or one for each task and model."""
    if suite.studies:
        return [(("studies", place), listed, ()) for place, listed in enumerate(suite.studies)]
    problems, lists = [], list[list[tuple[Path, Entry]]]()
    fields: dict[str, tuple[Entry, ...]] = {"tasks": suite.tasks, "models": suite.models}
    for field, entries in fields.items():
        names = [_called(entry) for entry in entries]
        for place, name in enumerate(names):
            path, first, message = (field, place), names.index(name), ""
            if name is None:
                message = "needs a `name`, after which its studies are called"
            elif first < place:
                message = f"'{name}' is {field}[{first}] already; name each once, or give one of them another `name`"
            problems += [written.problem(path, message)] if message else []
        lists += [[((field, place), entry) for place, entry in enumerate(entries)]] if entries else []
    if problems:
        raise StudyError(problems)
    return [(parts[0][0], suite.study, parts) for parts in product(*lists)]


def _called(entry: Entry) -> str | None:
    """What studies of an entry are called after; None where it has to be said."""
    value = entry.task if isinstance(entry, ListedTask) else entry.model
    if entry.name or not isinstance(value, str):
        return entry.name
    text = value if isinstance(entry, ListedTask) else value.rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9_+-]+", "-", text).strip("-") or "x"


def _written(
    suite: SuiteFile, listed: ListedStudy | None, parts: Sequence[tuple[Path, Entry]], path: Path, written: Written
) -> Written:
    """A study as it was written, with the changes that the suite makes to it."""
    if listed is not None:
        found = _read(listed, suite.profile, written)
        _change(found, listed.set, written, ("study",) if parts else path)
    else:
        data = {name: value for name, value in written.data.items() if name not in OWN_FIELDS}
        places = {place: where for place, where in written.places.items() if not place or place[0] not in OWN_FIELDS}
        found = Written(plain_copy(data), places, written.label, written.base)
        take_changes(found)
    names = [suite.suite]
    for place, entry in parts:
        name = "task" if isinstance(entry, ListedTask) else "model"
        own = entry.model_dump(mode="json", include={name}, exclude_unset=True)[name]
        if name == "task" and isinstance(own, dict):
            own["name"] = entry.name
        _put(found, name, own, written.places.get(place, written.label))
        _change(found, entry.set, written, place)
        names.append(_called(entry) or "")
    if parts:
        _put(found, "study", "-".join(names)[:LONGEST_NAME], written.places.get(("suite",), written.label))
        found.data.pop("profiles", None)
    return found


def _read(listed: ListedStudy, profile: str | None, suite: Written) -> Written:
    """A study file with its profile; its path is no longer than the suite's own was typed."""
    home = FilePath(suite.label).parent
    found = read_source((home if home.resolve() == suite.base.resolve() else suite.base) / expanded(listed.file))
    if "suite" in found.data and "arms" not in found.data:
        raise FairtuneError(f"{found.label} is a suite, and a suite holds studies; list its studies here instead.")
    chosen = listed.profile or profile
    try:
        take_changes(found, (), chosen)
    except StudyError as error:
        if listed.profile is None and chosen is not None and error.problems[0].where == f"--profile {chosen}":
            raise FairtuneError(f"{error.problems[0].message} The suite's `profile` is '{chosen}'.") from None
        raise
    return found


def _put(study: Written, field: str, value: Any, where: str) -> None:
    """Let a value, and the line that messages name, be those of the suite."""
    study.data[field] = value
    for old in [path for path in study.places if path[:1] == (field,)]:
        del study.places[old]
    study.places[field,] = where


def _change(study: Written, changes: Mapping[str, Any], suite: Written, path: Path) -> None:
    """Make the changes of an entry, which messages find in the suite file."""
    for key, value in changes.items():
        where = suite.places.get((*path, "set", key), suite.label)
        take_changes(study, [f"{key}={json.dumps(value)}"], origin=where)


def _cell_problems(cells: Mapping[str, SuiteStudy]) -> Iterator[tuple[str, str]]:
    """Studies or tasks of one name, a task twice with one model, different references, and arms that no two studies share."""
    names, files, pairs = dict[str, str](), dict[str, tuple[str, str]](), dict[tuple[str, str], str]()
    sound = True
    for key, cell in cells.items():
        study, task, model = cell.study, task_name(cell.study), model_name(cell.study)
        own = "" if isinstance(study.task, str) else study.task.train
        other, first = files.setdefault(task, (own, key))
        message = ""
        if (same := names.setdefault(study.study, key)) != key:
            message = f"the study '{study.study}' is {same} already; studies of one name would share their runs. "
            message += "Change one with {file: ..., set: {study: NAME}}"
        elif own != other:
            message = (
                f"its task is called '{task}' as that of {first}, but has other files; give each task its own `name`"
            )
        elif (same := pairs.setdefault((task, model), key)) != key:
            message = f"{task} with {model} is {same} already; a task counts once with a model; leave out one of them"
        if message:
            sound = False
            yield key, message
    references = {cell.study.compare.to: key for key, cell in reversed(list(cells.items()))}
    others = {key: [arm for arm in cell.study.arms if arm not in references] for key, cell in cells.items()}
    if sound and len(references) > 1:
        listed = "; ".join(f"{arm} in {key}" for arm, key in reversed(list(references.items())))
        begin = f"the studies are compared to different arms ({listed})"
        yield "", f"{begin}; one arm must be the reference of all: see `compare.to`"
    elif sound and len(cells) > 1 and max(Counter(chain(*others.values())).values(), default=0) < 2:
        begin = f"no arm but {one_of(references)} is in two studies or more, so there is nothing to say over tasks"
        listed = "; ".join(f"{key}: {one_of(arms)}" for key, arms in others.items())
        yield "", f"{begin}. Arms are matched by name: {listed}"


def task_name(study: Study) -> str:
    """The task by its name."""
    return ALIASES.get(study.task, study.task) if isinstance(study.task, str) else study.task.name


def model_name(study: Study) -> str:
    """The model as plans call it."""
    model = study.model_of(study.compare.to)
    preset = parse_preset(model) if isinstance(model, PresetModel) else None
    return str(model) if preset is None else preset_name(preset)


def is_suite(source: StudySource) -> bool:
    """Whether a file says of itself that it is a suite."""
    return "suite" in read_source(source).data


def check_suite(source: StudySource) -> tuple[Suite, list[Problem]]:
    """Check a suite file with each of its profiles, every study of it, and the files and models that those name.

    Returns:
        The suite without a profile, and what its studies name that is not on this machine, each once.

    Raises:
        StudyError: with every problem found, each once.
    """
    profiles = read_source(source, "suite").data.get("profiles")
    problems, absent, suites = list[Problem](), dict[str, Problem](), list[Suite]()
    for profile in (None, *(profiles if isinstance(profiles, dict) else ())):
        called, found = "" if profile is None else f"profile {profile}: ", list[Problem]()
        try:
            suites.append(load_suite(source, profile=profile))
        except StudyError as error:
            found = error.problems
        for cell in suites[-1].studies if not found else ():
            alone = cell.source.copy()
            alone.data.pop("profiles", None)  # the other profiles of its file are none of the suite's
            try:
                check_file(alone)
            except StudyError as error:
                found += error.problems
            else:
                absent |= {one.message: one for one in find_absences(alone)}
        known = {problem.message for problem in problems}
        problems += [Problem(p.where, called + p.path, p.message) for p in found if p.message not in known]
    if problems:
        raise StudyError(problems)
    return suites[0], list(absent.values())
