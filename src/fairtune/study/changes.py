"""Changes to a study as it was written, made before it is checked: a profile, and overrides from the command line."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from fairtune.core.errors import nearest, one_of, shown
from fairtune.methods.arms import named_arms
from fairtune.study.problems import Problem, StudyError, dotted
from fairtune.study.schema import is_arm_list
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
        study.places["arms", name] = study.where(("arms", position))


def apply_profile(study: Written, profile: str, kind: str = "study", origin: str | None = None) -> None:
    """Merge one of the study's profiles into it.

    Args:
        kind: what it is, in messages.
        origin: where the profile is chosen, in messages; None is the command line.
    """
    profiles, path = study.data.get("profiles"), ("profiles", profile)
    if not isinstance(profiles, dict) or profile not in profiles:
        names = list(profiles) if isinstance(profiles, dict) else []
        known = one_of(names) or f"this {kind} has none"
        message = f"no such profile in {study.label}; known: {known}.{nearest(profile, names)}"
        raise StudyError([Problem(origin or f"--profile {profile}", "", message)])
    changes, arms = profiles[profile], study.data.get("arms")
    if not isinstance(changes, dict):
        raise StudyError([study.problem(path, f"found {shown(changes)}; allowed: a mapping of changes")])
    if "profiles" in changes:
        raise StudyError([study.problem((*path, "profiles"), "a profile cannot change profiles; remove it")])
    changes = copy.deepcopy(changes)
    if isinstance(changes.get("arms"), list) and isinstance(arms, dict):
        chosen = _chosen_arms(changes.pop("arms"), arms, study.where((*path, "arms")), (*path, "arms"))
        tune = changes.get("tune")
        space = tune.get("space") if isinstance(tune, dict) else None
        if isinstance(chosen, dict) and isinstance(space, dict):
            own = {name: arm for name, arm in chosen.items() if isinstance(arm, dict)}
            chosen |= {name: {key: arm[key] for key in arm if key not in space} for name, arm in own.items()}
        study.data["arms"] = chosen  # without what the profile tunes
    elif isinstance(arms, list) and isinstance(changes.get("arms"), dict):
        del changes["arms"]  # the list could not be spread; its faults are reported
    study.data.update(_merged(study.data, changes))
    moved = {old[2:]: where for old, where in study.places.items() if old[:2] == path}
    study.places.update({new: where for new, where in moved.items() if new and new[0] in changes})


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: _merged(old.get(key), value) for key, value in new.items()}
    return new


def apply_override(study: Written, override: str) -> None:
    """Make one change of the form `a.b=c`."""
    key, equals, text = override.partition("=")
    option = f"--set {override}"
    option = option if len(option) <= LONGEST_OPTION else f"{option[:LONGEST_OPTION]}..."
    try:
        value = parse_yaml(text).data
    except YamlProblem as problem:
        raise StudyError([Problem(option, "", f"the value is not valid YAML: {problem.message}")]) from None
    set_value(study, key if equals else "", value, option)


def set_value(study: Written, key: str, value: Any, origin: str) -> None:
    """Change one value.

    `arms.NAME` without a value takes an arm out. A list of names as `arms` chooses arms: one that the study has keeps its settings.

    Args:
        key: its place, such as train.epochs or arms.mine.methods.0.focal.gamma.
        origin: where the change stands, in messages.
    """
    parts = re.sub(r"\[(\d+)\]", r".\1", key.strip()).split(".")
    if not all(parts) or len(parts) > MOST_LEVELS:
        raise _wrong(origin, "an override has the form KEY=VALUE, such as train.epochs=2")
    place: Any = study.data
    path: Path = ()
    for part in parts[:-1]:
        name = _key(place, part, path, origin)
        path = (*path, name)
        if isinstance(place, list) and isinstance(place[int(name)], str):
            place[int(name)] = {place[int(name)]: {}}  # a method that is listed by its name alone
        elif isinstance(place, dict) and place.get(name) is None:
            place[name] = {}
            study.places[path] = origin
        place = place[name]
        if path == ("arms",) and isinstance(place, list):
            return  # it could not be spread; its faults are reported
        if not isinstance(place, dict | list):
            raise _wrong(origin, f"{dotted(path)} is {shown(place)}, which has no fields to set; replace it as a whole")
    last = _key(place, parts[-1], path, origin)
    path = (*path, last)
    for old in [one for one in study.places if one[: len(path)] == path]:
        del study.places[old]
    if len(path) == 2 and path[0] == "arms" and value is None:
        if last not in place:
            message = f"there is no arm '{last}' to remove; arms: {one_of(place)}.{nearest(str(last), place)}"
            raise _wrong(origin, message)
        del place[last]
        return
    if path == ("arms",) and isinstance(value, list) and isinstance(place.get("arms"), dict):
        value = _chosen_arms(value, place["arms"], origin)
    place[last] = value
    study.places[path] = origin


def _key(place: Any, part: str, path: Path, origin: str) -> str | int:
    """A part of an override as its place has it: a key, or the number of an entry."""
    if not isinstance(place, list):
        return part
    if not part.isdecimal() or int(part) >= len(place):
        entries = f"a list of {len(place)}, whose entries have the numbers from 0"
        raise _wrong(origin, f"{dotted(path)} is {entries}, as in {dotted(path)}.0; found '{part}'")
    return int(part)


def _wrong(origin: str, message: str) -> StudyError:
    return StudyError([Problem(origin, "", message)])


def _chosen_arms(names: list[Any], arms: Mapping[str, Any], where: str, path: Path = ()) -> Any:
    """The arms of these names, each as the study has it; a name that it does not have is a named arm, as in a file's list."""
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names) or not names:
        return names  # reported by its type
    known = dict.fromkeys([*arms, *named_arms()])
    message = "'{}' is neither an arm of the study nor a named arm; there are: {}.{}"
    unknown = [message.format(name, one_of(known), nearest(name, known)) for name in names if name not in known]
    if unknown:
        raise StudyError([Problem(where, dotted(path), one) for one in unknown])
    return {name: copy.deepcopy(arms.get(name, {})) for name in names}
