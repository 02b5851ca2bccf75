"""From a YAML file (or a mapping), a profile and overrides to a checked study."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from fairtune.errors import FairtuneError, nearest, one_of
from fairtune.study.arms import is_arm_list
from fairtune.study.checks import arm_problems, conflict_problems, reference_problems
from fairtune.study.kinds import kind_problems
from fairtune.study.model_checks import model_problems
from fairtune.study.problems import Origins, Problem, StudyError, dotted, problems_of, shown
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path, YamlProblem, parse_yaml

StudySource = str | FilePath | Mapping[str, Any]


def load_study(source: StudySource, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Read a study.

    Args:
        source: a YAML file, or the same as a mapping.
        overrides: changes of the form `a.b=c`, applied last.
        profile: the name of one of the study's profiles.

    Raises:
        StudyError: with every problem found.
    """
    data, places, label = _read(source)
    _spread_arm_list(data, places)
    if profile is not None:
        _apply_profile(data, places, profile, label)
        _spread_arm_list(data, places)
    for override in overrides:
        _apply_override(data, places, override)
        _spread_arm_list(data, places)
    return _validated(data, Origins(label, places), base=_folder(source))


def check_file(source: StudySource) -> Study:
    """Check a study file with each of its profiles; returns the study without a profile."""
    study = load_study(source)
    problems: list[Problem] = []
    for profile in study.profiles:
        try:
            load_study(source, profile=profile)
        except StudyError as error:
            problems += [Problem(p.where, f"profile {profile}: {p.path}", p.message) for p in error.problems]
    if problems:
        raise StudyError(problems)
    return study


def _folder(source: StudySource) -> FilePath:
    return FilePath.cwd() if isinstance(source, Mapping) else FilePath(source).resolve().parent


def _read(source: StudySource) -> tuple[dict[str, Any], dict[Path, str], str]:
    if isinstance(source, Mapping):
        return copy.deepcopy(dict(source)), {}, "study"
    file = FilePath(source)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        others = [str(p) for p in sorted(file.parent.glob("*.y*ml"))] if file.parent.is_dir() else []
        there = f" In that folder: {one_of(others)}." if others else ""
        raise FairtuneError(f"{file}: there is no such study file.{nearest(str(file), others) or there}") from None
    except UnicodeDecodeError as error:
        raise FairtuneError(f"{file}: not UTF-8 text (byte {error.start}); save the study file as UTF-8.") from None
    except OSError as error:
        raise FairtuneError(f"{file}: cannot be read: {error.strerror}.") from None
    try:
        tree = parse_yaml(text)
    except YamlProblem as problem:
        raise StudyError([Problem(f"{file}:{problem.line}", "", f"not valid YAML: {problem.message}")]) from None
    if not isinstance(tree.data, dict):
        found = "nothing" if tree.data is None else shown(tree.data)
        raise StudyError(
            [Problem(str(file), "", f"found {found}; a study file is a mapping that starts with 'study: NAME'")]
        )
    return tree.data, {path: f"{file}:{line}" for path, line in tree.lines.items()}, str(file)


def _spread_arm_list(data: dict[str, Any], places: dict[Path, str]) -> None:
    """A list of named arms as the mapping that it stands for, so that changes can be made to one of them."""
    names = data.get("arms")
    if not is_arm_list(names):
        return
    data["arms"] = {name: {} for name in names}
    for position, name in enumerate(names):
        if ("arms", position) in places:
            places["arms", name] = places.pop(("arms", position))


def _is_bad_arm_list(path: Path, value: Any) -> bool:
    """A list of arms that could not be spread: changes to it wait until it is mended, since its faults are told."""
    return path == ("arms",) and isinstance(value, list)


def _apply_profile(data: dict[str, Any], places: dict[Path, str], profile: str, label: str) -> None:
    profiles = data.get("profiles") or {}
    if not isinstance(profiles, dict) or profile not in profiles:
        names = list(profiles) if isinstance(profiles, dict) else []
        known = one_of(names) if names else "this study has none"
        raise StudyError(
            [
                Problem(
                    f"--profile {profile}", "", f"no such profile in {label}; known: {known}.{nearest(profile, names)}"
                )
            ]
        )
    changes = profiles[profile]
    if not isinstance(changes, dict):
        raise StudyError(
            [
                Problem(
                    places.get(("profiles", profile), label),
                    f"profiles.{profile}",
                    f"found {shown(changes)}; allowed: a mapping of changes",
                )
            ]
        )
    if "profiles" in changes:
        where = places.get(("profiles", profile, "profiles"), label)
        raise StudyError(
            [Problem(where, f"profiles.{profile}.profiles", "a profile cannot change profiles; remove it")]
        )
    _merge(data, changes, (), ("profiles", profile), places)


def _merge(data: dict[str, Any], changes: Mapping[str, Any], path: Path, origin: Path, places: dict[Path, str]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value, (*path, key), (*origin, key), places)
            continue
        if isinstance(value, dict) and _is_bad_arm_list((*path, key), data.get(key)):
            continue
        data[key] = copy.deepcopy(value)
        _replace_places(places, (*path, key), (*origin, key))


def _replace_places(places: dict[Path, str], target: Path, origin: Path) -> None:
    for old in [p for p in places if p[: len(target)] == target]:
        del places[old]
    for old in [p for p in places if p[: len(origin)] == origin]:
        places[target + old[len(origin) :]] = places[old]


def _apply_override(data: dict[str, Any], places: dict[Path, str], override: str) -> None:
    key, equals, text = override.partition("=")
    parts: Path = tuple(key.strip().split("."))
    option = f"--set {override}"
    if not equals or not all(parts):
        raise StudyError([Problem(option, "", "an override has the form KEY=VALUE, such as train.epochs=2")])
    try:
        value = parse_yaml(text).data
    except YamlProblem as problem:
        raise StudyError([Problem(option, "", f"the value is not valid YAML: {problem.message}")]) from None
    place: Any = data
    for depth, part in enumerate(parts[:-1], start=1):
        if place.get(part) is None:
            place[part] = {}
            places[parts[:depth]] = option
        if _is_bad_arm_list(parts[:depth], place[part]):
            return
        if not isinstance(place[part], dict):
            raise StudyError(
                [Problem(option, "", f"{dotted(parts[:depth])} is {shown(place[part])}, which has no fields to set")]
            )
        place = place[part]
    place[parts[-1]] = value
    for old in [p for p in places if p[: len(parts)] == parts]:
        del places[old]
    places[parts] = option


def _validated(data: dict[str, Any], origins: Origins, base: FilePath) -> Study:
    problems = [*reference_problems(data, origins), *arm_problems(data, origins)]
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        problems = problems_of(error.errors(), origins) + problems
    else:
        problems += [
            *conflict_problems(study, origins),
            *kind_problems(study, origins),
            *model_problems(study, origins),
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
            split: str(base / FilePath(file).expanduser())
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
    """A folder's whole path; None for what is no folder."""
    if isinstance(given, str) and (given.startswith((".", "~/", "/")) or (base / given).is_dir()):
        return str((base / FilePath(given).expanduser()).resolve())
    return None
