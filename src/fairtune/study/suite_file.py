"""Suites: several studies with the same arms, listed by file, or one study over tasks and models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo

from fairtune.core.errors import FairtuneError, one_of
from fairtune.core.plugins import ConsentNeeded
from fairtune.models.presets import parse_preset, preset_name
from fairtune.settings.file_task import FileTask
from fairtune.settings.model import Model, PresetModel
from fairtune.settings.values import LONGEST_NAME, LONGEST_TEXT, Name, Place, Section
from fairtune.study.allowed import spelt_out
from fairtune.study.changes import apply_profile, set_value
from fairtune.study.messages import problems_of
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.schema import MOST_PROFILES, Study, TaskName, study_json_schema
from fairtune.study.source import StudySource, Written, expanded, read_source
from fairtune.study.study_file import RIGHT, Look, read_names, take_changes, validated, with_profiles
from fairtune.study.yaml_tree import Path
from fairtune.tasks.definitions import ALIASES

MOST_STUDIES = 500


def _needed(name: str | None, info: ValidationInfo) -> str | None:
    """What is no name itself needs one."""
    if name is None and any(not isinstance(value, str) for value in info.data.values()):
        raise ValueError("is needed: its studies are called after it")
    return name


File = Annotated[Place, Field(title="a study file")]
ProfileName = Annotated[str, Field(max_length=LONGEST_NAME)]
Changes = Annotated[
    dict[Annotated[str, Field(max_length=LONGEST_TEXT)], Any],
    Field(title="a mapping of fields to values, such as {train.epochs: 2}"),
]
Group = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="a text")]
PartName = Annotated[Name | None, Field(validate_default=True), AfterValidator(_needed)]
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
    name: PartName = Field(None, description="What its studies are called after; needed for your own files.")
    set: Changes = Field({}, description="Changes to the study for this task alone.")

    @property
    def label(self) -> str:
        return self.name or _as_name(str(self.task))


class ListedModel(Section):
    """One model of a suite."""

    model: Model = Field(description="A model as a study's `model` names it.")
    name: PartName = Field(None, description="What its studies are called after; needed for a preset with settings.")
    set: Changes = Field({}, description="Changes to the study for this model alone.")
    group: Group | None = Field(None, description=GROUP_HELP)

    @property
    def label(self) -> str:
        return self.name or _as_name(str(self.model).rpartition("/")[2])


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_+-]+", "-", text).strip("-") or "x"


def _or_alone(field: str, alone: Any, fields: type[Section]) -> Any:
    """An entry with its fields, or its first field alone."""
    return Annotated[
        fields, BeforeValidator(lambda given: {field: given} if isinstance(given, str) else given, alone | fields)
    ]


AnyStudy = _or_alone("file", File, ListedStudy)
AnyTask = _or_alone("task", TaskName, ListedTask)
AnyModel = _or_alone("model", Place, ListedModel)


class SuiteFile(Section):
    """A suite: tasks x models x the same arms."""

    suite: Name = Field(description="Name of the suite; its page is kept under this name.")
    studies: tuple[AnyStudy, ...] = Field(  # type: ignore[valid-type]
        (), description="The studies, each a study file, or a file with its profile and changes."
    )
    study: AnyStudy | None = Field(  # type: ignore[valid-type]
        None, description="One study file, taken for each of `tasks` and `models`; if absent, its fields stand here."
    )
    tasks: tuple[AnyTask, ...] = Field((), description="The tasks on which the one study is made.")  # type: ignore[valid-type]
    models: tuple[AnyModel, ...] = Field(  # type: ignore[valid-type]
        (), description="The models with which it is made; if absent, the study's own."
    )
    profile: ProfileName | None = Field(
        None, description="The profile that every study file of the suite is read with, unless it names its own."
    )
    profiles: dict[ProfileName, dict[str, Any]] = Field(
        {}, max_length=MOST_PROFILES, description="Named sets of changes to this file, chosen with --profile."
    )


OWN_FIELDS = set(SuiteFile.model_fields)


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
        source: what it was read from, with all changes; `load_checked` and `run_study` take it.
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
        return self.studies[0].study.compare.to


Parts = tuple[tuple[Path, ListedTask | ListedModel], ...]
"""The task and the model of a study that is made for each of them, with their places in the suite file."""


def load_suite(
    source: StudySource, overrides: Sequence[str] = (), profile: str | None = None, look: Sequence[Look] = ()
) -> Suite:
    """Read a suite and every study of it, as `load_study` reads one; overrides change every study.

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
    for path, listed, parts in _cells(suite):
        try:
            own = _written(suite, listed, parts, path, written)
            take_changes(own, overrides)
            study = validated(own, look)
        except ConsentNeeded:
            raise
        except StudyError as error:
            problems += error.problems
        except FairtuneError as error:
            problems.append(Problem(written.where(path), "", str(error)))
        else:
            groups = [one.group for _, one in parts if isinstance(one, ListedModel)]
            key = ", ".join(dotted(one) for one, _ in parts) or dotted(path)
            found[key] = SuiteStudy(study, own, listed.group if listed and not parts else next(iter(groups), None))
            places[key] = written.where(path)
    problems = problems or [Problem(places.get(key, written.label), key, text) for key, text in _cell_problems(found)]
    if problems:
        raise StudyError(list(dict.fromkeys(problems)))
    return Suite(suite.suite, tuple(found.values()), tuple(suite.profiles))


def check_suite(source: StudySource, look: Sequence[Look] = RIGHT) -> Suite:
    """As `check_file` checks a study."""
    return with_profiles(source, "suite", lambda written, profile: load_suite(written, (), profile, look))


def _validated(written: Written) -> SuiteFile:
    """The suite's own fields; where it is one study over tasks and models, other fields are that study's."""
    data = written.data
    inline = "studies" not in data and data.get("study") is None and ("tasks" in data or "models" in data)
    try:
        suite = SuiteFile.model_validate({name: data[name] for name in data if name in OWN_FIELDS or not inline})
    except ValidationError as error:
        raise StudyError(problems_of(error.errors(), written, spelt_out(_schema()))) from None
    made, message = bool(suite.tasks or suite.models), ""
    if suite.studies and (made or suite.study):
        message = "lists whole studies; `study`, `tasks` and `models` are for one study over tasks and models; keep one of the two"
    elif not (suite.studies or made):
        message = "found neither `studies` nor `tasks` and `models`, or they are empty; a suite needs one of them"
    elif (count := len(suite.studies) or max(1, len(suite.tasks)) * max(1, len(suite.models))) > MOST_STUDIES:
        message = f"{count:,} studies; a suite has at most {MOST_STUDIES}"
    if message:
        raise StudyError([written.problem(("studies",), message)])
    return suite


def _cells(suite: SuiteFile) -> list[tuple[Path, ListedStudy | None, Parts]]:
    """Every study of the list, or one for each task and model: where it is named, its file, and its task and model."""
    if suite.studies:
        return [(("studies", place), listed, ()) for place, listed in enumerate(suite.studies)]
    fields: dict[str, tuple[ListedTask | ListedModel, ...]] = {"tasks": suite.tasks, "models": suite.models}
    lists = [
        [((field, place), entry) for place, entry in enumerate(entries)] for field, entries in fields.items() if entries
    ]
    return [(parts[0][0], suite.study, parts) for parts in product(*lists)]


def _written(suite: SuiteFile, listed: ListedStudy | None, parts: Parts, path: Path, written: Written) -> Written:
    """A study as it was written, with the changes that the suite makes to it."""
    if listed is None:
        found = written.copy()
        for name in OWN_FIELDS - {"profile"}:  # which the study then refuses: there is no file to read with it
            found.data.pop(name, None)
        take_changes(found)
    else:
        path = ("study",) if parts else path
        home = FilePath(written.label).parent  # as it was typed
        folder = home if home.resolve() == written.base.resolve() else written.base
        found = read_source(folder / expanded(listed.file))
        if "suite" in found.data and "arms" not in found.data:
            raise FairtuneError(f"{found.label} is a suite, and a suite holds studies; list its studies here instead.")
        chosen = (*path, "profile") if listed.profile is not None else ("profile",)
        take_changes(found, (), listed.profile or suite.profile, written.where(chosen))
        _change(found, listed.set, written, path)
    for place, entry in parts:
        field = "task" if isinstance(entry, ListedTask) else "model"
        value = entry.model_dump(mode="json", include={field}, exclude_unset=True)[field]
        if field == "task" and isinstance(value, dict):
            value["name"] = entry.name
        set_value(found, field, value, written.where(place))
        _change(found, entry.set, written, place)
    if parts:
        name = "-".join([suite.suite, *(entry.label for _, entry in parts)])[:LONGEST_NAME]
        set_value(found, "study", name, written.where(("suite",)))
    found.data.pop("profiles", None)  # the other profiles of a file are none of the suite's
    return found


def _change(study: Written, changes: Mapping[str, Any], suite: Written, path: Path) -> None:
    """Make the changes of an entry, which messages find in the suite file."""
    for key, value in changes.items():
        set_value(study, key, value, suite.where((*path, "set", key)))
        read_names(study)


def _cell_problems(cells: Mapping[str, SuiteStudy]) -> Iterator[tuple[str, str]]:
    """Studies or tasks of one name, a task twice with one model, different references, and arms that no two studies share."""
    names, files, pairs = dict[str, str](), dict[str, str](), dict[tuple[str, str], str]()
    for key, cell in cells.items():
        study, task, model = cell.study, task_name(cell.study), model_name(cell.study)
        own = "" if isinstance(study.task, str) else study.task.train
        if (same := names.setdefault(study.study, key)) != key:
            begin = f"the study '{study.study}' is {same} already; studies of one name would share their runs"
            yield key, f"{begin}. Give one another name: {{..., set: {{study: NAME}}}}, or `name` of a task or model"
        elif files.setdefault(task, own) != own:
            yield key, f"another task with other files is called '{task}' too; give each task its own `name`"
        elif (same := pairs.setdefault((task, model), key)) != key:
            yield key, f"{task} with {model} is {same} already; a task counts once with a model; leave out one of them"
    references = {cell.study.compare.to: key for key, cell in reversed(list(cells.items()))}
    others = {key: [arm for arm in cell.study.arms if arm not in references] for key, cell in cells.items()}
    if len(references) > 1:
        listed = "; ".join(f"{arm} in {key}" for arm, key in reversed(list(references.items())))
        begin = f"the studies are compared to different arms ({listed})"
        yield "", f"{begin}; one arm must be the reference of all: see `compare.to`"
    elif len(cells) > 1 and max(Counter(chain(*others.values())).values(), default=0) < 2:
        begin = f"no arm but {one_of(references)} is in two studies or more, so there is nothing to say over tasks"
        listed = "; ".join(f"{key}: {one_of(arms)}" for key, arms in others.items())
        yield "", f"{begin}. Arms are matched by name: {listed}"


def task_name(study: Study) -> str:
    return ALIASES.get(study.task, study.task) if isinstance(study.task, str) else study.task.name


def model_name(study: Study) -> str:
    """The model as plans call it."""
    model = study.model_of(study.compare.to)
    preset = parse_preset(model) if isinstance(model, PresetModel) else None
    return str(model) if preset is None else preset_name(preset)


def is_suite(source: StudySource) -> bool:
    """Whether a file says of itself that it is a suite."""
    return "suite" in read_source(source).data
