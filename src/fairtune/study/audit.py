"""The audit: every difference between arms that is not a method, since each is a rival explanation of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtune.study.schema import Study


@dataclass(frozen=True)
class Difference:
    """A setting in which an arm differs from the arm it is compared to.

    Args:
        control: an arm without methods that has exactly this arm's settings, if the study has one.
    """

    arm: str
    reference: str
    setting: str
    value: Any
    reference_value: Any
    control: str | None

    def __str__(self) -> str:
        ours, theirs = _text(self.setting, self.value), _text(self.setting, self.reference_value)
        told = f"{self.arm}: {self.setting} is {ours}, {self.reference} has {theirs}"
        if self.control == self.arm:
            return f"{told}; this arm is itself the control for that"
        if self.control:
            return f"{told}; like with like: compare with {self.control}"
        return f"{told}; no arm without methods has these settings, so method and setting cannot be told apart"


def differences(study: Study) -> tuple[Difference, ...]:
    """All differences from the reference arm that are not methods."""
    reference = study.compare.to
    settings = {arm: _settings(study, arm) for arm in study.arms}
    base = settings[reference]
    found = []
    for arm, own in settings.items():
        changed = [setting for setting, value in own.items() if value != base[setting]]
        control = _control(study, settings, arm) if changed else None
        found += [Difference(arm, reference, setting, own[setting], base[setting], control) for setting in changed]
    return tuple(found)


def control_of(study: Study, arm: str) -> str | None:
    """The control of one arm, if the study has it."""
    return _control(study, {arm: _settings(study, arm) for arm in study.arms}, arm)


def _control(study: Study, settings: dict[str, dict[str, Any]], arm: str) -> str | None:
    """The arm without methods whose settings are exactly this arm's: the fair comparison. The reference if it fits."""
    candidates = (study.compare.to, *study.arms)
    return next((c for c in candidates if not study.methods(c) and settings[c] == settings[arm]), None)


def _settings(study: Study, arm: str) -> dict[str, Any]:
    model = study.model_of(arm)
    name = model if isinstance(model, str) else model.model_dump(mode="json", exclude_none=True)
    return {"model": name, **study.settings(arm).model_dump(mode="json")}


def _text(setting: str, value: Any) -> str:
    if value is None:
        return "the model's own" if setting == "attention" else "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
