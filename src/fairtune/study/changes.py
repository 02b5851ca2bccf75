"""Changes to a study as it was written, made before it is checked: a profile, and overrides from the command line."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fairtune.core.errors import nearest, one_of, shown
from fairtune.methods.arms import named_arms
from fairtune.study.arms import is_arm_list
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.source import Written
from fairtune.study.yaml_tree import MOST_LEVELS, Path, YamlProblem, parse_yaml

LONGEST_OPTION = 200
"""Characters of an option that messages repeat."""


def _wrong(where: str, message: str, path: Path = ()) -> StudyError:
    return StudyError([Problem(where, dotted(path), message)])


def spread_arm_list(study: Written) -> None:
    """A list of named arms as the mapping that it stands for, so that changes can be made to one of them."""
    names = study.data.get("arms")
    if not is_arm_list(names):
        return
    study.data["arms"] = {name: {} for name in names}
    for position, name in enumerate(names):
        if ("arms", position) in study.places:
            study.places["arms", name] = study.places.pop(("arms", position))


def apply_profile(study: Written, profile: str, kind: str = "study") -> None:
    """Merge one of the study's profiles into it.

    Args:
        kind: what it is, in messages.

    Raises:
        StudyError: there is none of that name, or it is no mapping of changes.
    """
    profiles, arms, origin = study.data.get("profiles") or {}, study.data.get("arms"), ("profiles", profile)
    if not isinstance(profiles, dict) or profile not in profiles:
        names = list(profiles) if isinstance(profiles, dict) else []
        known = one_of(names) if names else f"this {kind} has none"
        message = f"no such profile in {study.label}; known: {known}.{nearest(profile, names)}"
        raise _wrong(f"--profile {profile}", message)
    changes = profiles[profile]
    if not isinstance(changes, dict):
        where = study.places.get(origin, study.label)
        raise _wrong(where, f"found {shown(changes)}; allowed: a mapping of changes", origin)
    if "profiles" in changes:
        where = study.places.get((*origin, "profiles"), study.label)
        raise _wrong(where, "a profile cannot change profiles; remove it", (*origin, "profiles"))
    if isinstance(changes.get("arms"), list) and isinstance(arms, dict):
        where = study.places.get((*origin, "arms"), study.label)
        chosen, tune = _chosen_arms(changes["arms"], arms, where, (*origin, "arms")), changes.get("tune")
        space = tune.get("space") if isinstance(tune, dict) else None
        if isinstance(chosen, dict) and isinstance(space, dict):
            for arm in (arm for arm in chosen.values() if isinstance(arm, dict)):
                for name in arm.keys() & space.keys():
                    del arm[name]  # the profile tunes it
        study.data["arms"] = chosen
        changes = {name: value for name, value in changes.items() if name != "arms"}
    taken, begin = set(_merge(study.data, changes)), len(origin)
    moved = {
        path[begin:]: where
        for path, where in study.places.items()
        if path[:begin] == origin and _is_below(path[begin:], taken)
    }
    for path in [path for path in study.places if _is_below(path, taken)]:
        del study.places[path]
    study.places.update(moved)


def _merge(data: dict[str, Any], changes: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """Write changes into the data, and say which values were replaced."""
    for key, value in changes.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(data.get(key), dict):
            yield from _merge(data[key], value, here)
        elif not (isinstance(value, dict) and _is_bad_arm_list(here, data.get(key))):
            data[key] = copy.deepcopy(value)
            yield here


def _is_below(path: Path, replaced: set[Path]) -> bool:
    return any(path[:length] in replaced for length in range(1, len(path) + 1))


def _is_bad_arm_list(path: Path, value: Any) -> bool:
    """A list of arms that could not be spread: changes to it wait until it is fixed, since its faults are reported."""
    return path == ("arms",) and isinstance(value, list)


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
    option = option if len(option) <= LONGEST_OPTION else f"{option[:LONGEST_OPTION]}..."
    if not equals or not all(parts) or len(parts) > MOST_LEVELS:
        raise _wrong(option, "an override has the form KEY=VALUE, such as train.epochs=2")
    try:
        value = parse_yaml(text).data
    except YamlProblem as problem:
        raise _wrong(option, f"the value is not valid YAML: {problem.message}") from None
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
            found = f"{dotted(path)} is {shown(place)}, which has no fields to set"
            raise _wrong(option, f"{found}; replace it: {dotted(path)}={{{following}: {text}}}")
    last = path[-1]
    for old in [one for one in study.places if one[: len(path)] == path]:
        del study.places[old]
    if len(path) == 2 and path[0] == "arms" and value is None:
        if last not in place:
            message = f"there is no arm '{last}' to remove; arms: {one_of(place)}.{nearest(str(last), place)}"
            raise _wrong(option, message)
        del place[last]
        return
    if path == ("arms",) and isinstance(value, list) and isinstance(place.get("arms"), dict):
        value = _chosen_arms(value, place["arms"], option)
    place[last] = value
    study.places[path] = option


def _key(place: Any, part: str, path: Path, option: str) -> str | int:
    """A part of an override as its place has it: a key, or the number of an entry."""
    if not isinstance(place, list):
        return part
    if not part.isdecimal() or int(part) >= len(place):
        entries = f"a list of {len(place)}, whose entries have the numbers from 0"
        raise _wrong(option, f"{dotted(path)} is {entries}, as in {dotted(path)}.0; found '{part}'")
    return int(part)


def _chosen_arms(names: list[Any], arms: Mapping[str, Any], where: str, path: Path = ()) -> Any:
    """The arms of these names, each as the study has it; a name that it does not have is a named arm, as in a file's list."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or not names:
        return names  # reported by its type
    known = list(dict.fromkeys([*arms, *named_arms()]))
    problems = [
        Problem(
            where,
            dotted(path),
            f"'{name}' is neither an arm of the study nor a named arm; there are: {one_of(known)}.{nearest(name, known)}",
        )
        for name in names
        if name not in known
    ]
    if problems:
        raise StudyError(problems)
    return {name: copy.deepcopy(arms.get(name, {})) for name in names}
