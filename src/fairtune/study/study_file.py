"""From a YAML file (or a mapping), a profile and overrides to a checked study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import ValidationError

from fairtune.core.plugins import load_named, plugins_allowed
from fairtune.study.arm_checks import arm_problems, written_arm_problems
from fairtune.study.changes import apply_override, apply_profile, spread_arm_list
from fairtune.study.input_checks import absences, input_problems
from fairtune.study.messages import problems_of
from fairtune.study.problems import Problem, StudyError
from fairtune.study.schema import Study
from fairtune.study.source import StudySource, Written, absolute_folder, expanded, read_source
from fairtune.study.study_checks import study_problems
from fairtune.study.yaml_tree import Path

__all__ = ["StudySource", "check_file", "load_checked", "load_plugins", "load_study", "take_changes"]

Loaded = TypeVar("Loaded")
Look = Callable[[Mapping[str, Any], FilePath], Iterable[tuple[Path, str]]]
RIGHT: tuple[Look, ...] = (input_problems,)
"""Finds what a study names that is wrong on any machine."""
HERE: tuple[Look, ...] = (input_problems, absences)
"""Also what is right, but cannot be had on this machine."""
FETCHED: tuple[Look, ...] = (input_problems, partial(absences, fetched=True))
"""Also what has yet to be fetched."""


def load_study(
    source: StudySource, overrides: Sequence[str] = (), profile: str | None = None, allow_plugins: bool = False
) -> Study:
    """Read a study.

    Args:
        source: a YAML file, or the same as a mapping.
        overrides: changes of the form `a.b=c`, applied last.
        profile: the name of one of the study's profiles.
        allow_plugins: execute the modules that it names under `plugins`, now and from now on; read them first.

    Raises:
        StudyError: with every problem found.
        ConsentNeeded: it names a module that was not allowed yet; nothing was executed.
    """
    with plugins_allowed(allow_plugins):
        return _load(read_source(source), overrides, profile)


def load_checked(source: StudySource, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Read a study, and look at the data and the models that it names: what every verb does that is about to use them.

    Raises:
        StudyError: with every problem found, in the file and in what it names.
    """
    return _load(read_source(source), overrides, profile, HERE)


def check_file(source: StudySource, look: Sequence[Look] = RIGHT) -> Study:
    """Check a study file with each of its profiles, and the files and models that they name; returns it without a profile."""
    return with_profiles(source, "study", lambda written, profile: _load(written, profile=profile, look=look))


def find_absences(source: StudySource, check: Callable[[StudySource, Sequence[Look]], object]) -> list[Problem]:
    """What a right file and its profiles name that is not on this machine, each once; `check_file` or `check_suite` looks."""
    try:
        check(source, FETCHED)
    except StudyError as error:
        return list({problem.message: problem for problem in reversed(error.problems)}.values())[::-1]
    return []


def with_profiles(source: StudySource, kind: str, load: Callable[[Written, str | None], Loaded]) -> Loaded:
    """Load a file with each of its profiles, and return it without one; all problems at once, each once."""
    written, loaded = read_source(source, kind), list[Loaded]()
    profiles = written.data.get("profiles")
    found: dict[Problem, Problem] = {}
    for profile in (None, *(profiles if isinstance(profiles, dict) else ())):
        try:
            loaded.append(load(written.copy(), profile))
        except StudyError as error:
            called = "" if profile is None else f"profile {profile}: "
            for one in error.problems:
                found.setdefault(one, Problem(one.where, called + one.path, one.message))
    if found:
        raise StudyError(list(found.values()))
    return loaded[0]


def take_changes(
    written: Written, overrides: Sequence[str] = (), profile: str | None = None, origin: str | None = None
) -> None:
    """Make the changes of a profile, then the overrides, to what was read.

    Args:
        origin: where the profile is chosen, in messages; None is the command line.
    """
    read_names(written)
    if profile is not None:
        apply_profile(written, profile, origin=origin)
        read_names(written)
    for override in overrides:
        apply_override(written, override)
        read_names(written)


def _load(
    written: Written, overrides: Sequence[str] = (), profile: str | None = None, look: Sequence[Look] = ()
) -> Study:
    if "suite" in written.data and any(name in written.data for name in ("studies", "tasks", "models")):
        message = "this is a suite, not a study; `fairtune suite` runs and plans it"
        raise StudyError([Problem(written.where(("suite",)), "", message)])
    take_changes(written, overrides, profile)
    return validated(written, look)


def load_plugins(source: StudySource) -> None:
    """Load the plug-ins that a study names, whatever else is right or wrong with it."""
    read_names(read_source(source))


def read_names(written: Written) -> None:
    """Load the plug-ins that the study names by now, and then spread the arms that they may have named."""
    named = written.data.get("plugins")
    names = named if isinstance(named, list) else []
    if errors := load_named([name for name in names if isinstance(name, str)], written.base):
        raise StudyError([written.problem(("plugins", names.index(name)), str(errors[name])) for name in errors])
    spread_arm_list(written)


def validated(written: Written, look: Sequence[Look]) -> Study:
    """The study of what was written, with all changes made; see `load_study`."""
    data = written.data
    problems, found = [], list(written_arm_problems(data))
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error.errors(), written)
    else:
        found += [*study_problems(study), *arm_problems(study)]
    for inputs in look:
        found += inputs(data, written.base)
    problems += [written.problem(path, message) for path, message in dict.fromkeys(found)]
    if problems:
        raise StudyError(sorted(problems, key=_by_line))
    return _with_absolute_files(study, written.base)


def _by_line(problem: Problem) -> tuple[str, int]:
    file, _, line = problem.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (problem.where, 0)


def _with_absolute_files(study: Study, base: FilePath) -> Study:
    """Relative files of a task and folders of model and tokenizer start at the study file, wherever the command is typed."""
    changes: dict[str, Any] = {}
    if not isinstance(study.task, str):
        own = {split: str(base / expanded(str(file))) for split, file in study.task.files.items()}
        changes["task"] = study.task.model_copy(update=own)
    for name in ("model", "tokenizer"):
        if folder := absolute_folder(getattr(study, name), base):
            changes[name] = folder
    folders = {name: absolute_folder(getattr(arm, "model", None), base) for name, arm in study.arms.items()}
    own_models = {name: {"model": folder} if folder else {} for name, folder in folders.items()}
    changes["arms"] = {name: arm.model_copy(update=own_models[name]) for name, arm in study.arms.items()}
    return study.model_copy(update=changes)
