"""The arms of a plan made by hand, with the controls that `make_plan` would have decided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from fairtune.methods.config import MethodUse
from fairtune.methods.registry import parse_method_use
from fairtune.study.controls import ArmSettings, find_controls, find_primaries


def planned_arms(
    arms: Mapping[str, tuple[Sequence[Any], dict[str, Any]]], reference: str, learners: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The arms as a plan has them, from their methods and settings; methods that nobody registered stay as they are.

    Args:
        learners: of arms that are not fine-tuned.
    """
    uses = {arm: [_use(method) for method in methods] for arm, (methods, _) in arms.items()}
    known = {arm: [use for use in found if use is not None] for arm, found in uses.items()}
    found = {arm: ArmSettings(arms[arm][1], known[arm], (learners or {}).get(arm)) for arm in arms}
    controls = find_controls(found, reference)
    primaries = find_primaries(controls, reference)
    return {
        arm: {
            "methods": [use.as_json() if use else method for use, method in zip(uses[arm], methods, strict=True)],
            **({"learner": learners[arm]} if learners and arm in learners else {}),
            "train": settings,
            "control": controls[arm],
            "primary": primaries[arm],
            "idle": bool(known[arm]) and all(use.config.idle for use in known[arm]),
            "step_factor": math.prod((use.config.step_factor for use in known[arm]), start=1.0),
        }
        for arm, (methods, settings) in arms.items()
    }


def _use(method: Any) -> MethodUse | None:
    try:
        return parse_method_use(method)
    except (ValidationError, PydanticCustomError):
        return None
