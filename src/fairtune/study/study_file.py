"""From a YAML file (or a mapping), a profile and overrides to a checked study."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.core.plugins import PluginError, load_module
from fairtune.study.changes import apply_override, apply_profile, spread_arm_list
from fairtune.study.checks import (
    arm_problems,
    conflict_problems,
    kind_problems,
    model_problems,
    reference_problems,
    size_problems,
)
from fairtune.study.learner_checks import learner_name_problems, learner_problems
from fairtune.study.metric_checks import metric_problems
from fairtune.study.plain_data import faults
from fairtune.study.problems import (
    MOST_SHOWN,
    Origins,
    Problem,
    StudyError,
    dotted,
    problems_of,
)
from fairtune.study.removed_arms import require_controls, require_reference
from fairtune.study.schema import Study
from fairtune.study.search_space import tune_problems
from fairtune.study.source import StudySource, Written, read_source

__all__ = ["StudySource", "check_file", "load_study"]


def load_study(source: StudySource, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Read a study.

    Args:
        source: a YAML file, or the same as a mapping.
        overrides: changes of the form `a.b=c`, applied last.
        profile: the name of one of the study's profiles.

    Raises:
        StudyError: with every problem found.
    """
    return _load(read_source(source), overrides, profile)


def check_file(source: StudySource) -> Study:
    """Check a study file with each of its profiles; returns the study without a profile."""
    written = read_source(source)
    study = _load(written.copy())
    problems: list[Problem] = []
    for profile in study.profiles:
        try:
            _load(written.copy(), profile=profile)
        except StudyError as error:
            problems += [Problem(p.where, f"profile {profile}: {p.path}", p.message) for p in error.problems]
    if problems:
        raise StudyError(problems)
    return study


def _load(written: Written, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    _read_names(written)
    if profile is not None:
        apply_profile(written, profile)
        _read_names(written)
    for override in overrides:
        apply_override(written, override)
        _read_names(written)
    require_reference(written)
    origins = Origins(written.label, written.places)
    study = _validated(written.data, origins, written.base)
    require_controls(study, written, lambda data: _validated(data, origins, written.base))
    return study


def _read_names(written: Written) -> None:
    """Load the plug-ins that the study names by now, and then spread the arms that they may have named."""
    named, problems = written.data.get("plugins"), []
    for position, name in enumerate(named if isinstance(named, list) else []):
        if isinstance(name, str):  # the schema refuses what is none
            try:
                load_module(name, written.base)
            except PluginError as error:
                path = ("plugins", position)
                where = Origins(written.label, written.places).of(path)
                problems.append(Problem(where, dotted(path), str(error)))
    if problems:
        raise StudyError(problems)
    spread_arm_list(written)


def _validated(data: dict[str, Any], origins: Origins, base: FilePath) -> Study:
    unfit = [Problem(origins.of(path), dotted(path), message) for path, message in islice(faults(data), MOST_SHOWN)]
    if unfit:
        raise StudyError(unfit)
    problems = [
        *reference_problems(data, origins),
        *arm_problems(data, origins),
        *learner_name_problems(data, origins),
    ]
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error.errors(), origins) + problems
    else:
        problems += [
            *size_problems(study, origins),
            *conflict_problems(study, origins),
            *kind_problems(study, origins),
            *metric_problems(study, origins),
            *model_problems(study, origins),
            *learner_problems(study, origins),
            *tune_problems(study, origins),
        ]
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
            split: str(base / _expanded(file))
            for split in ("train", "validation", "test")
            if (file := getattr(study.task, split))
        }
        changes["task"] = study.task.model_copy(update=files)
    for name in ("model", "tokenizer"):
        if folder := _absolute(getattr(study, name), base):
            changes[name] = folder
    changes["arms"] = {
        name: arm.model_copy(update={"model": folder})
        if (folder := _absolute(getattr(arm, "model", None), base))
        else arm
        for name, arm in study.arms.items()
    }
    return study.model_copy(update=changes)


def _absolute(given: Any, base: FilePath) -> str | None:
    """A folder's whole path; None for what is not a folder."""
    if isinstance(given, str) and (given.startswith((".", "~/", "/")) or _is_folder(base / given)):
        return str((base / _expanded(given)).resolve())
    return None


def _expanded(given: str) -> FilePath:
    """With the home folder for `~`; as it is, where nobody knows whose that would be."""
    try:
        return FilePath(given).expanduser()
    except RuntimeError:
        return FilePath(given)


def _is_folder(path: FilePath) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a folder above it may not be looked into
        return False
