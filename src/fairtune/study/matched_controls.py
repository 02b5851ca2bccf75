"""Matched controls: where two arms that are compared chose other settings, the other one once more, with the first one's settings.

Choosing by a few trials is itself a matter of luck: an arm whose method does nothing may find a better rate than its partner, and
the reported seeds would then show the rate, again and again. A verdict therefore has to hold against both: the partner as it was
tuned, and the partner with the same settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtune.settings.tune import Tune
from fairtune.study.added_arms import free_name, setting_word
from fairtune.study.schema import Study


@dataclass(frozen=True)
class MatchedControls:
    """What was found.

    Args:
        controls: of each arm that needs one, its matched control.
        partners: of each control that is added, the arm that it is but for its settings.
    """

    study: Study
    controls: dict[str, str] = field(default_factory=dict)
    partners: dict[str, str] = field(default_factory=dict)


def add_matched_controls(study: Study, primaries: Mapping[str, str | None], copy: str | None = None) -> MatchedControls:
    """The study, tuned, with a matched control for every arm whose choice is not its partner's.

    Args:
        primaries: of each arm, the arm that it is compared with.
        copy: the arm that is the reference once more, which chose nothing of its own.
    """
    tune, arms = study.tune, dict(study.arms)
    controls: dict[str, str] = {}
    partners: dict[str, str] = {}
    if tune is None:
        return MatchedControls(study)
    for arm, partner in primaries.items():
        if partner is None or arm == copy or any(study.learner(one) for one in (arm, partner)):
            continue  # another way to learn has no settings to share
        chosen = _chosen(study, arm, tune)
        if chosen == _chosen(study, partner, tune):
            continue
        wanted = arms[partner].model_copy(update=chosen)
        same = [name for name, found in arms.items() if name != arm and _is_same(found, wanted)]
        name = same[0] if same else free_name(_name(partner, chosen), arms)
        if not same:
            arms[name], partners[name] = wanted, partner
        controls[arm] = name
    return MatchedControls(study.model_copy(update={"arms": arms}), controls, partners)


def _chosen(study: Study, arm: str, tune: Tune) -> dict[str, Any]:
    settings = study.settings(arm)
    return {name: getattr(settings, name) for name in tune.shared}


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arms train alike."""
    own, theirs = (arm.model_dump(exclude={"methods", "preset"}, exclude_none=True) for arm in (one, other))
    return bool(own == theirs and list(one.methods) == list(other.methods))


def _name(partner: str, chosen: Mapping[str, Any]) -> str:
    return "-".join([partner, *(f"{name.replace('_', '-')}-{setting_word(value)}" for name, value in chosen.items())])
