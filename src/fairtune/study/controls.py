"""The control of each arm: the arm that it is fairest to compare with, decided once, when the study is planned.

It has the arm's very settings without the effect of its methods: the arm in which they only look on, else one without methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairtune.methods.config import MethodUse
from fairtune.methods.registry import is_control


@dataclass(frozen=True)
class ArmSettings:
    """An arm as far as its control depends on it."""

    settings: Mapping[str, Any]
    methods: Sequence[MethodUse]


def find_controls(arms: Mapping[str, ArmSettings], reference: str) -> dict[str, str | None]:
    """Each arm's control, the reference itself where that is it; None where the study has none.

    An arm without methods has none: it is a comparison of settings.
    """
    return {arm: _control(arms, arm, reference) if arms[arm].methods else None for arm in arms}


def _control(arms: Mapping[str, ArmSettings], arm: str, reference: str) -> str | None:
    own = arms[arm]
    alike = [a for a in arms if a != arm and arms[a].settings == own.settings]
    alike.sort(key=lambda a: a != reference)  # the reference first: what is compared with it needs no second comparison
    idle = [a for a in alike if arms[a].methods and is_control(arms[a].methods, own.methods)]
    if idle:
        return idle[0]
    if arms[reference].methods and reference in alike:
        return None  # the study's own choice is to compare with these methods, at the same settings
    return next((a for a in alike if not arms[a].methods), None)
