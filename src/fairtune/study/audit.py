"""The audit: every difference between arms that is not a method, each a rival explanation of a result; and each arm's control.

The control is the arm that it is fairest to compare with, decided once, when the study is planned: this arm's very settings without
the effect of its methods, which is the arm in which they only look on, else one without methods. With it an arm's primary
comparison is made; where there is none, with the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from fairtune.core.numbers import setting as plain_setting
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import is_control
from fairtune.models.sources import ModelSource
from fairtune.settings.learners import Learner
from fairtune.study.schema import Study

TUNED = "tuned"
"""The value, in comparisons, of a setting that every arm chose by trials of its own."""


@dataclass(frozen=True)
class ArmSettings:
    """An arm as far as its control depends on it.

    Args:
        settings: of its training; and its model, in a study that has several: a setting like any other in which arms may differ.
            One that is tuned is just that: every arm had the same choice, so what it chose makes no difference. Of a
            learner, those that mean anything to it.
        learner: what it learns with, where it is not fine-tuned. Such an arm is a whole other way: it has no control and is none,
            and settings are no difference from it.
        tuned: the values of settings that are tuned.
    """

    settings: Mapping[str, Any]
    methods: Sequence[MethodUse]
    learner: str | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """The settings that its runs have."""
        return {**self.settings, **self.tuned}


def arm_settings(study: Study, models: Mapping[str, ModelSource]) -> dict[str, ArmSettings]:
    """Each arm's settings, by which the plan, its audit and the results tell whether two arms are alike.

    Args:
        models: what each arm starts from. The same one may go by two names, and two by the same.
    """
    names = {model.identity: model.name for arm, model in models.items() if study.uses_model(arm)}
    counts = Counter(names.values())
    labels = {identity: name if counts[name] == 1 else f"{name}@{identity[:8]}" for identity, name in names.items()}
    found = {}
    for arm in study.arms:
        own: dict[str, Any] = {}
        if len(labels) > 1 and study.uses_model(arm):
            own["model"] = labels[models[arm].identity]
        if (pairs := study.pairs(arm)) is not None:
            own["pairs"] = pairs
        found[arm] = settings_of(study, arm, own)
    return found


def settings_of(study: Study, arm: str, own: Mapping[str, Any], whole: bool = False) -> ArmSettings:
    """An arm's settings, with what it has besides.

    Args:
        whole: of a learner too, also those that mean nothing to it.
    """
    learner, train = study.learner(arm), {**study.settings(arm).model_dump(mode="json"), "lr": rate_of(study, arm)}
    if learner is not None and not whole:
        train = {name: value for name, value in train.items() if learner.uses(name)}
    shared = study.tune.shared if study.tune is not None and is_tuned(learner) else ()
    tuned = {name: train[name] for name in shared}
    settings = {**own, **train, **dict.fromkeys(tuned, TUNED)}
    return ArmSettings(settings, study.methods(arm), learner.name if learner else None, tuned)


def rate_of(study: Study, arm: str) -> float:
    """The learning rate by which an arm is compared: methods may replace the run's."""
    return reduce(lambda lr, use: use.config.control_lr(lr), study.methods(arm), study.settings(arm).lr)


def is_tuned(learner: Learner | None) -> bool:
    """Whether an arm that learns so gets trials; simple baselines choose for themselves, on validation too."""
    return learner is None or learner.trained


def find_controls(arms: Mapping[str, ArmSettings], reference: str) -> dict[str, str | None]:
    """Each arm's control, the reference itself where that is it; None where the study has none.

    An arm without methods has none: it is a comparison of settings.
    """
    return {arm: _control(arms, arm, reference) if arms[arm].methods else None for arm in arms}


def _control(arms: Mapping[str, ArmSettings], arm: str, reference: str) -> str | None:
    own = arms[arm]
    alike = [a for a in arms if a != arm and arms[a].settings == own.settings and not arms[a].learner]
    alike.sort(key=lambda a: a != reference)  # the reference first: what is compared with it needs no second comparison
    idle = [a for a in alike if arms[a].methods and is_control(arms[a].methods, own.methods)]
    if idle:
        return idle[0]
    if arms[reference].methods and reference in alike:
        return None  # the study's own choice is to compare with these methods, at the same settings
    return next((a for a in alike if not arms[a].methods), None)


def find_primaries(controls: Mapping[str, str | None], reference: str) -> dict[str, str | None]:
    """The arm with which each is compared, by which it is ranked and judged; None for the reference itself."""
    return {arm: None if arm == reference else control or reference for arm, control in controls.items()}


def find_unmatched(arms: Mapping[str, ArmSettings], reference: str) -> tuple[str, ...]:
    """The arms whose methods and settings cannot be told apart: they have no control, nor the reference's settings."""
    controls, base = find_controls(arms, reference), arms[reference]
    return tuple(
        arm
        for arm, own in arms.items()
        if own.methods and not controls[arm] and (own.settings != base.settings or base.learner)
    )


@dataclass(frozen=True)
class Difference:
    """A setting in which an arm differs from the arm it is compared to.

    Args:
        control: the fair comparison, if the study has it: this arm's settings without the effect of its methods; an arm without
            methods is its own.
        add: the line of a study file that would add a control, where there is none.
    """

    arm: str
    reference: str
    setting: str
    value: Any
    reference_value: Any
    control: str | None
    add: str | None = None

    def __str__(self) -> str:
        ours, theirs = setting_text(self.setting, self.value), setting_text(self.setting, self.reference_value)
        found = f"{self.arm}: {self.setting} is {ours}, {self.reference} has {theirs}"
        if self.control == self.arm:
            return f"{found}; this arm is itself the control for that"
        if self.control:
            return f"{found}; like with like: compare with {self.control}"
        apart = f"{found}; no arm without methods has these settings, so method and setting cannot be told apart"
        return f"{apart}; add the arm `{self.add}`" if self.add else apart


def find_differences(
    arms: Mapping[str, ArmSettings], reference: str, missing: Mapping[str, str] | None = None
) -> tuple[Difference, ...]:
    """All differences from the reference arm that are not methods.

    Args:
        missing: of arms without a control, the line of a study file that would add one.
    """
    if arms[reference].learner:
        return ()
    controls, base = find_controls(arms, reference), arms[reference].settings
    found = []
    for arm, own in arms.items():
        if own.learner:
            continue
        control = controls[arm] if own.methods else arm
        changed = [setting for setting, value in own.settings.items() if value != base[setting]]
        found += [
            Difference(arm, reference, setting, own.settings[setting], base[setting], control, (missing or {}).get(arm))
            for setting in changed
        ]
    return tuple(found)


def setting_text(setting: str, value: Any) -> str:
    """A setting's value as messages show it."""
    if value is None:
        return "the model's own" if setting in ("attention", "attention_kernel") else "none"
    return str(value).lower() if isinstance(value, bool) else plain_setting(value)
