"""The schema of a suite file: several studies of the same arms, listed, or one study over tasks and models."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from fairtune.settings.file_task import FileTask
from fairtune.settings.model import Model
from fairtune.settings.values import LONGEST_NAME, LONGEST_TEXT, Name, Place, Section
from fairtune.study.schema import MOST_PROFILES, TaskName, study_json_schema

MOST_STUDIES, MOST_CHANGES, MOST_TASKS, MOST_MODELS = 200, 100, 100, 50
File = Annotated[Place, Field(title="a study file")]
Changes = Annotated[
    dict[Annotated[str, Field(max_length=LONGEST_TEXT)], Any],
    Field(max_length=MOST_CHANGES, title="a mapping of fields to values, such as {train.epochs: 2}"),
]
Group = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="a text")]
GROUP_HELP = (
    "What it belongs to, such as encoder; means are also shown by group. If absent, whether it classifies or generates, and "
    "whether it starts from a checkpoint."
)


def _tag(value: object) -> str:
    return "<name>" if isinstance(value, str) else "<fields>"


class ListedStudy(Section):
    """One study of a suite."""

    file: File = Field(description="The study file; a relative path starts at the suite file.")
    profile: Annotated[str, Field(max_length=LONGEST_NAME)] | None = Field(
        None, description="The profile of that file to read it with; if absent, the suite's `profile`."
    )
    set: Changes = Field({}, description="Changes to that study, made last, as `--set` makes them.")
    group: Group | None = Field(None, description=GROUP_HELP)


class ListedTask(Section):
    """One task of a suite."""

    task: Annotated[
        Annotated[TaskName, Tag("<name>")] | Annotated[FileTask, Tag("<files>")],
        Discriminator(lambda value: "<name>" if isinstance(value, str) else "<files>"),
    ] = Field(description="A task of the catalogue by name, or your own files.")
    name: Name | None = Field(None, description="What its studies are called after; needed for your own files.")
    set: Changes = Field({}, description="Changes to the study for this task alone.")


class ListedModel(Section):
    """One model of a suite."""

    model: Model = Field(description="A model as a study's `model` names it.")
    name: Name | None = Field(None, description="What its studies are called after; needed for a preset with settings.")
    set: Changes = Field({}, description="Changes to the study for this model alone.")
    group: Group | None = Field(None, description=GROUP_HELP)


def _either(name: Any, fields: type[Section]) -> Any:
    return Annotated[Annotated[name, Tag("<name>")] | Annotated[fields, Tag("<fields>")], Discriminator(_tag)]


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
    profile: Annotated[str, Field(max_length=LONGEST_NAME)] | None = Field(
        None, description="The profile that every study file of the suite is read with, unless it names its own."
    )
    profiles: dict[Annotated[str, Field(max_length=LONGEST_NAME)], dict[str, Any]] = Field(
        {}, max_length=MOST_PROFILES, description="Named sets of changes to this file, chosen with --profile."
    )


OWN_FIELDS = tuple(SuiteFile.model_fields)


@cache
def suite_json_schema() -> dict[str, Any]:
    """The JSON schema of a suite file; fields of a study, which may stand in it too, have their own."""
    return SuiteFile.model_json_schema()


def whole_suite_json_schema() -> dict[str, Any]:
    """The same for editors: with the fields of a study, which stand in a suite file that is one study over tasks and models."""
    own, study = suite_json_schema(), study_json_schema()
    return {
        **study,
        **own,
        "$defs": {**study["$defs"], **own["$defs"]},
        "properties": {**study["properties"], **own["properties"]},
        "title": "fairtune suite",
    }
