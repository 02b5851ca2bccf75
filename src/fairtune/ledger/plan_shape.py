"""What every reader of a stored plan relies on: its parts are there, and names in it are those of folders.

A seal says that a plan is what somebody wrote, not who: a folder that came from elsewhere may hold a plan made by hand, and an arm
that is called `../..` must not lead anybody out of the study's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

NEEDED = {"task": dict, "arms": dict, "compare": dict, "runs": list}
"""What no reader can do without."""
SEPARATORS = {"/", "\0", os.sep, os.altsep or os.sep}
"""What no name of a folder has in it."""
LARGEST_SEED, MOST_STEPS = 2**63 - 1, 2**53
"""What the index and a script can hold."""


def plan_problem(plan: Mapping[str, Any]) -> str | None:
    """What is wrong with a plan, in words that follow "it is not a plan of this version:"; None where nothing is."""
    for name, kind in NEEDED.items():
        if not isinstance(plan.get(name), kind):
            return f"it lacks {name}"
    if not isinstance(plan.get("model") or {}, dict):
        return "its model is not a mapping"
    for name, arm in plan["arms"].items():
        if not is_folder_name(name):
            return f"{_named(name)} is no name of an arm"
        if not isinstance(arm, dict) or not isinstance(arm.get("methods") or [], list):
            return f"its arm {_named(name)} is not a mapping with methods"
    for number, run in enumerate(plan["runs"]):
        if not isinstance(run, dict) or not _is_run(run):
            return f"its run {number + 1} has no proper arm, seed, key, steps or settings"
    return None


def is_folder_name(name: Any) -> bool:
    """Whether something can be called so inside a folder, and nowhere else."""
    if not isinstance(name, str) or name in ("", ".", "..") or any(letter in name for letter in SEPARATORS):
        return False
    try:
        os.fsencode(name)
    except UnicodeError:
        return False
    return True


def _is_run(run: Mapping[str, Any]) -> bool:
    seed, steps = run.get("seed"), run.get("steps")
    settings = run.get("settings") or {}
    return (
        is_folder_name(run.get("arm"))
        and isinstance(run.get("key"), str)
        and _is_count(seed, LARGEST_SEED)
        and (steps is None or _is_count(steps, MOST_STEPS))
        and isinstance(settings, dict)
        and isinstance(settings.get("train") or {}, dict)
    )


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _named(name: object) -> str:
    return ascii(str(name)[:60])
