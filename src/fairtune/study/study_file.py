"""From a YAML file (or a mapping), a profile and overrides to a checked study."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import islice
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.core.plugin_files import plugins_allowed
from fairtune.core.plugins import load_named
from fairtune.study.arm_checks import arm_problems, require_controls, written_arm_problems
from fairtune.study.changes import apply_override, apply_profile, spread_arm_list
from fairtune.study.input_checks import absences, input_problems
from fairtune.study.places import absolute_folder, expanded
from fairtune.study.plain_data import faults
from fairtune.study.problems import (
    MOST_SHOWN,
    Origins,
    Problem,
    StudyError,
    dotted,
    problems_of,
)
from fairtune.study.schema import Study
from fairtune.study.source import StudySource, Written, read_source
from fairtune.study.study_checks import study_problems

__all__ = ["StudySource", "check_file", "load_checked", "load_study", "take_changes"]


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
    """Read a study, and look at the data and the models that it names, too: what every verb does that is about to use them.

    Raises:
        StudyError: with every problem found, in the file and in what it names.
    """
    return _load(read_source(source), overrides, profile, LookAt.ALL)


class LookAt(Enum):
    """What of that which a study names is looked at: nothing, what can be told anywhere to be wrong, or also whether it is here."""

    NOTHING = 0
    RIGHT = 1
    ALL = 2


def find_absences(source: StudySource) -> list[Problem]:
    """What a study file and its profiles name that is right, as far as can be told, but not on this machine; each once."""
    written = read_source(source)
    profiles = written.data.get("profiles")
    found: list[Problem] = []
    for profile in (None, *(profiles if isinstance(profiles, dict) else ())):
        try:
            _load(written.copy(), profile=profile, look=LookAt.ALL)
        except StudyError as error:
            known = {problem.message for problem in found}
            called = "" if profile is None else f"profile {profile}: "
            found += [Problem(p.where, called + p.path, p.message) for p in error.problems if p.message not in known]
    return found


def check_file(source: StudySource) -> Study:
    """Check a study file with each of its profiles, and the files and models that they name; returns it without a profile.

    Raises:
        StudyError: with every problem found, each once.
    """
    written = read_source(source)
    found: list[Problem] = []
    study = None
    try:
        study = _load(written.copy(), look=LookAt.RIGHT)
    except StudyError as error:
        found += error.problems
    known = set(found)
    profiles = written.data.get("profiles")
    for profile in profiles if isinstance(profiles, dict) else ():
        try:
            _load(written.copy(), profile=profile, look=LookAt.RIGHT)
        except StudyError as error:
            own = [p for p in error.problems if p not in known]
            known.update(own)
            found += [Problem(p.where, f"profile {profile}: {p.path}", p.message) for p in own]
    if found or study is None:
        raise StudyError(found)
    return study


def take_changes(
    written: Written, overrides: Sequence[str] = (), profile: str | None = None, origin: str | None = None
) -> None:
    """Make the changes of a profile, then the overrides, to what was read.

    Args:
        origin: where the overrides stand, in messages; None is the command line.
    """
    _read_names(written)
    if profile is not None:
        apply_profile(written, profile)
        _read_names(written)
    for override in overrides:
        apply_override(written, override, origin)
        _read_names(written)


def _load(
    written: Written, overrides: Sequence[str] = (), profile: str | None = None, look: LookAt | None = None
) -> Study:
    if "suite" in written.data and any(name in written.data for name in ("studies", "tasks", "models")):
        where = Origins(written.label, written.places).of(("suite",))
        raise StudyError([Problem(where, "", "this is a suite, not a study; `fairtune suite` runs and plans it")])
    take_changes(written, overrides, profile)
    origins = Origins(written.label, written.places)
    study = _validated(written.data, origins, written.base, look or LookAt.NOTHING)
    require_controls(study, written, lambda data: _validated(data, origins, written.base))
    return study


def _read_names(written: Written) -> None:
    """Load the plug-ins that the study names by now, and then spread the arms that they may have named."""
    named = written.data.get("plugins")
    names = named if isinstance(named, list) else []
    errors = load_named([name for name in names if isinstance(name, str)], written.base)  # the schema refuses others
    if errors:
        origins, places = Origins(written.label, written.places), [("plugins", names.index(name)) for name in errors]
        texts = map(str, errors.values())
        raise StudyError([Problem(origins.of(p), dotted(p), text) for p, text in zip(places, texts, strict=True)])
    spread_arm_list(written)


def _validated(data: dict[str, Any], origins: Origins, base: FilePath, look: LookAt = LookAt.NOTHING) -> Study:
    unfit = [Problem(origins.of(path), dotted(path), message) for path, message in islice(faults(data), MOST_SHOWN)]
    if unfit:
        raise StudyError(unfit)
    found, schema = list(written_arm_problems(data)), []
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        schema = problems_of(error.errors(), origins)
    else:
        found += [*study_problems(study), *arm_problems(study)]
    if look is not LookAt.NOTHING:
        found += input_problems(data, base)
    if look is LookAt.ALL:
        found += absences(data, base)
    problems = schema + [Problem(origins.of(path), dotted(path), message) for path, message in dict.fromkeys(found)]
    if problems:
        raise StudyError(sorted(problems, key=_by_line))
    return _with_absolute_files(study, base)


def _by_line(problem: Problem) -> tuple[str, int]:
    file, _, line = problem.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (problem.where, 0)


def _with_absolute_files(study: Study, base: FilePath) -> Study:
    """Relative files of a task and folders of model and tokenizer start at the study file, wherever the command is typed."""
    changes: dict[str, Any] = {}
    if not isinstance(study.task, str):
        files = {
            split: str(base / expanded(file))
            for split in ("train", "validation", "test")
            if (file := getattr(study.task, split))
        }
        changes["task"] = study.task.model_copy(update=files)
    for name in ("model", "tokenizer"):
        if folder := absolute_folder(getattr(study, name), base):
            changes[name] = folder
    changes["arms"] = {
        name: arm.model_copy(update={"model": folder})
        if (folder := absolute_folder(getattr(arm, "model", None), base))
        else arm
        for name, arm in study.arms.items()
    }
    return study.model_copy(update=changes)
