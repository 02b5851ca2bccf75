"""Changes to a study as it was written, made before it is checked: a profile, and overrides from the command line."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from fairtune.core.errors import nearest, one_of, shown
from fairtune.methods.arms import named_arms
from fairtune.study.arms import is_arm_list
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.source import Written
from fairtune.study.yaml_tree import MOST_LEVELS, Path, YamlProblem, parse_yaml

LONGEST_OPTION = 200
"""Characters of an option that messages repeat."""


def spread_arm_list(study: Written) -> None:
    """A list of named arms as the mapping that it stands for, so that changes can be made to one of them."""
    names = study.data.get("arms")
    if not is_arm_list(names):
        return
    study.data["arms"] = {name: {} for name in names}
    for position, name in enumerate(names):
        if ("arms", position) in study.places:
            study.places["arms", name] = study.places.pop(("arms", position))


def _is_bad_arm_list(path: Path, value: Any) -> bool:
    """A list of arms that could not be spread: changes to it wait until it is fixed, since its faults are reported."""
    return path == ("arms",) and isinstance(value, list)


def apply_profile(study: Written, profile: str, kind: str = "study") -> None:
    """Merge one of the study's profiles into it.

    Args:
        kind: what it is, in messages.

    Raises:
        StudyError: there is none of that name, or it is no mapping of changes.
    """
    profiles, places, label = study.data.get("profiles") or {}, study.places, study.label
    if not isinstance(profiles, dict) or profile not in profiles:
        names = list(profiles) if isinstance(profiles, dict) else []
        known = one_of(names) if names else f"this {kind} has none"
        message = f"no such profile in {label}; known: {known}.{nearest(profile, names)}"
        raise StudyError([Problem(f"--profile {profile}", "", message)])
    changes = profiles[profile]
    if not isinstance(changes, dict):
        where = places.get(("profiles", profile), label)
        message = f"found {shown(changes)}; allowed: a mapping of changes"
        raise StudyError([Problem(where, f"profiles.{profile}", message)])
    if "profiles" in changes:
        where = places.get(("profiles", profile, "profiles"), label)
        raise StudyError(
            [Problem(where, f"profiles.{profile}.profiles", "a profile cannot change profiles; remove it")]
        )
    if isinstance(changes.get("arms"), list) and isinstance(study.data.get("arms"), dict):
        where = places.get(("profiles", profile, "arms"), label)
        chosen = _chosen_arms(changes["arms"], study.data["arms"], where, f"profiles.{profile}.arms")
        study.data["arms"] = _without_tuned(chosen, changes.get("tune"))
        changes = {name: value for name, value in changes.items() if name != "arms"}
    moved: dict[Path, Path] = {}
    _merge(study.data, changes, (), ("profiles", profile), moved)
    _move_places(places, moved)


def _merge(data: dict[str, Any], changes: Mapping[str, Any], path: Path, origin: Path, moved: dict[Path, Path]) -> None:
    """Write changes into the data, and note from where each was taken."""
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            _merge(data[key], value, (*path, key), (*origin, key), moved)
            continue
        if isinstance(value, dict) and _is_bad_arm_list((*path, key), data.get(key)):
            continue
        data[key] = copy.deepcopy(value)
        moved[(*origin, key)] = (*path, key)


def _without_tuned(arms: Any, tune: Any) -> Any:
    """The arms that a profile lists, without settings that it tunes."""
    space = tune.get("space") if isinstance(tune, dict) else None
    if not isinstance(arms, dict) or not isinstance(space, dict):
        return arms
    return {
        name: {k: v for k, v in given.items() if k not in space} if isinstance(given, dict) else given
        for name, given in arms.items()
    }


def _move_places(places: dict[Path, str], moved: dict[Path, Path]) -> None:
    """Let what was written over stand where the profile has it; one pass, since a study may have thousands of values."""
    targets = set(moved.values())
    taken: dict[Path, str] = {}
    gone: list[Path] = []
    for path, where in places.items():
        beginnings = [path[:length] for length in range(1, len(path) + 1)]
        if any(beginning in targets for beginning in beginnings):
            gone.append(path)
        for beginning in beginnings:
            if beginning in moved:
                taken[moved[beginning] + path[len(beginning) :]] = where
    for path in gone:
        del places[path]
    places.update(taken)


def apply_override(study: Written, override: str, origin: str | None = None) -> None:
    """Make one change of the form `a.b=c`.

    Args:
        origin: where it stands, in messages; None is the command line.

    Raises:
        StudyError: it has another form, or there is nothing of that name to change.

    `arms.NAME=null` takes an arm out. A list of names under `arms` chooses arms: one that the study has keeps its settings.
    """
    key, equals, text = override.partition("=")
    parts = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")
    option = origin or f"--set {override}"
    if len(option) > LONGEST_OPTION:
        option = f"{option[:LONGEST_OPTION]}..."
    if not equals or not all(parts) or len(parts) > MOST_LEVELS:
        raise StudyError([Problem(option, "", "an override has the form KEY=VALUE, such as train.epochs=2")])
    try:
        value = parse_yaml(text).data
    except YamlProblem as problem:
        raise StudyError([Problem(option, "", f"the value is not valid YAML: {problem.message}")]) from None
    place: Any = study.data
    path: Path = ()
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        name = _key(place, part, path, option)
        path = (*path, name)
        if following is None:
            break
        if isinstance(place, list) and isinstance(place[int(name)], str):
            place[int(name)] = {place[int(name)]: {}}  # a method that is listed by its name alone
        elif isinstance(place, dict) and place.get(name) is None:
            place[name] = {}
            study.places[path] = option
        place = place[name]
        if _is_bad_arm_list(path, place):
            return
        if not isinstance(place, dict | list):
            whole = f"replace it: {dotted(path)}={{{following}: {text}}}"
            message = f"{dotted(path)} is {shown(place)}, which has no fields to set; {whole}"
            raise StudyError([Problem(option, "", message)])
    if path[0] == "arms" and len(path) == 2:
        if value is None:
            _remove_arm(study, path, option)
            return
        study.removed.pop(str(path[1]), None)
    elif path == ("arms",):
        study.removed.clear()
        if isinstance(value, list) and isinstance(place.get("arms"), dict):
            value = _chosen_arms(value, place["arms"], option)
    place[path[-1]] = value
    for old in [p for p in study.places if p[: len(path)] == path]:
        del study.places[old]
    study.places[path] = option


def _key(place: Any, part: str, path: Path, option: str) -> str | int:
    """A part of an override as its place has it: a key, or the number of an entry."""
    if not isinstance(place, list):
        return part
    if not part.isdecimal() or int(part) >= len(place):
        entries = f"a list of {len(place)}, whose entries have the numbers from 0"
        message = f"{dotted(path)} is {entries}, as in {dotted(path)}.0; found '{part}'"
        raise StudyError([Problem(option, "", message)])
    return int(part)


def _remove_arm(study: Written, path: Path, option: str) -> None:
    arms, name = study.data.get("arms"), str(path[1])
    if not isinstance(arms, dict):
        return  # reported by its type
    if name not in arms:
        raise StudyError(
            [Problem(option, "", f"there is no arm '{name}' to remove; arms: {one_of(arms)}.{nearest(name, arms)}")]
        )
    study.removed[name] = (option, arms.pop(name))
    for old in [place for place in study.places if place[:2] == path]:
        del study.places[old]


def _chosen_arms(names: list[Any], arms: Mapping[str, Any], option: str, path: str = "") -> Any:
    """The arms of these names, each as the study has it; a name that it does not have is a named arm, as in a file's list."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or not names:
        return names  # reported by its type
    known = [*arms, *named_arms()]
    problems = [
        Problem(option, path, f"'{name}' is neither an arm of the study nor a named arm; there are: {one_of(dict.fromkeys(known))}."
                f"{nearest(name, known)}")
        for name in names if name not in known
    ]  # fmt: skip
    if problems:
        raise StudyError(problems)
    return {name: copy.deepcopy(arms.get(name, {})) for name in names}
