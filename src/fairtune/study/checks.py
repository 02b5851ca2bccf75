"""What can be wrong between the fields of a study: names that lead nowhere, arms that say too much or too little."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from fairtune.core.errors import nearest, one_of, shown
from fairtune.methods.arms import family_of, named_arms
from fairtune.methods.registry import clashes, conflicts, registered
from fairtune.settings.values import LONGEST_NAME, MOST_RUNS, NAME
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path

NEAR = 0.8
"""How alike two names are, of 1, when one is taken for a slip of the other."""


def reference_problems(data: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """`compare.to` names an arm of the study."""
    arms, compare = data.get("arms"), data.get("compare", {})
    if not isinstance(arms, dict) or not arms or not isinstance(compare, dict):
        return []
    to = compare.get("to", "baseline")
    if not isinstance(to, str) or to in arms or len(to) > LONGEST_NAME:
        return []  # what is no name is reported by its type
    names = [str(arm) for arm in arms]
    return [
        Problem(
            origins.of(("compare", "to")),
            "compare.to",
            f"no arm is called {shown(to)}; arms: {one_of(names)}.{nearest(str(to), names)}",
        )
    ]


def size_problems(study: Study, origins: Origins) -> list[Problem]:
    """The runs can be counted, and their folders told apart."""
    found = []
    count = len(study.arms) * len(study.seeds)
    if count > MOST_RUNS:
        message = f"{len(study.arms):,} arms x {len(study.seeds):,} seeds are {count:,} runs; a study has at most {MOST_RUNS:,}"
        found.append(Problem(origins.of(("seeds",)), "seeds", f"{message}; use fewer seeds, or several studies"))
    first: dict[str, str] = {}
    for arm in study.arms:
        earlier = first.setdefault(arm.lower(), arm)
        if earlier != arm:
            path: Path = ("arms", arm)
            message = f"differs from '{earlier}' only in upper and lower case, and file systems may not tell their folders apart"
            found.append(Problem(origins.of(path), dotted(path), f"{message}; rename one"))
    return found


def conflict_problems(study: Study, origins: Origins) -> list[Problem]:
    """No two methods of an arm claim the same, and each can work beside the others."""
    found = []
    for arm in study.arms:
        for position, earlier, claim in conflicts(study.methods(arm)):
            path: Path = ("arms", arm, "methods", position)
            name = study.methods(arm)[position].name
            found.append(
                Problem(
                    origins.of(path),
                    dotted(path),
                    f"'{name}' and '{earlier}' both change the {claim}; keep one of them in this arm",
                )
            )
        for position, reason in clashes(study.methods(arm)):
            path = ("arms", arm, "methods", position)
            found.append(Problem(origins.of(path), dotted(path), reason))
    return found


def arm_problems(data: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """An arm has one source of methods, and none that its name promises is silently a baseline."""
    arms = data.get("arms")
    if not isinstance(arms, dict):
        return []
    found = []
    for name, arm in arms.items():
        path: Path = ("arms", name)
        if arm is not None and not isinstance(arm, dict):
            continue  # reported by its type
        preset = (arm or {}).get("preset")
        if "methods" in (arm or {}):
            if preset is not None:
                path = (*path, "preset")
                found.append(Problem(origins.of(path), dotted(path), "given together with `methods`; keep one of them"))
        elif preset is None and (promise := _broken_promise(name)):
            message = f"has neither `methods` nor `preset`, so it would train as a baseline, but {promise}"
            found.append(
                Problem(origins.of(path), dotted(path), f"{message}, or `methods: []` if it is meant to have none")
            )
    return found


def _broken_promise(name: Any) -> str | None:
    """Why this name makes one expect methods, and what to write; None for a plain name."""
    known = named_arms()
    if not isinstance(name, str) or name in known or not re.fullmatch(NAME, name):
        return None
    folded = re.sub(r"[_+-]+", "-", name.lower())
    with_methods = [arm.name for arm in known.values() if arm.methods]
    variant_of = sorted((arm for arm in with_methods if folded.startswith(f"{arm}-")), key=len, reverse=True)
    close = variant_of or difflib.get_close_matches(folded, with_methods, n=1, cutoff=NEAR)
    if close:
        return f"its name is close to a named arm's. Did you mean '{close[0]}'? Write that, or `preset: {close[0]}`"
    family = family_of(name)
    if family:
        members = [arm for arm in with_methods if arm.startswith(family)]
        return f"its name begins with '{family}', as these named arms: {one_of(members)}. Write `preset: NAME`"
    for method in registered():
        if f"{folded}-".startswith(f"{method.replace('_', '-')}-"):
            return f"its name is that of a method. Write `methods: [{method}]`"
    return None
