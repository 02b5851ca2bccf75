"""The audit: every difference between arms that is not a method, each a rival explanation of a result; and each arm's control.

The control is decided once, when the study is planned: this arm's very settings without the effect of its methods. That is the arm
in which they do nothing (an idle control), else one without methods. An arm's primary comparison is made with its control; where
there is none, with the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
        settings: that its training uses, and its model in a study that has several. A tuned one is `TUNED`: every arm had the same
            choice, so what it chose makes no difference.
        learner: of an arm that is not fine-tuned, which has no control and is none.
        tuned: the values of tuned settings.
    """

    settings: Mapping[str, Any]
    methods: Sequence[MethodUse]
    learner: str | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)


def arm_settings(
    study: Study, models: Mapping[str, ModelSource] | None = None, as_given: Collection[str] = ()
) -> dict[str, ArmSettings]:
    """Each arm's settings, which tell whether two arms are alike.

    Args:
        models: what each arm starts from, where that was looked up.
        as_given: arms that chose nothing, although the study is tuned.
    """
    names, found = _model_names(study, models), {}
    several = len(set(names.values())) > 1
    for arm in study.arms:
        learner, pairs = study.learner(arm), study.pairs(arm)
        train = {**study.settings(arm).model_dump(mode="json"), "lr": rate_of(study, arm)}
        own: dict[str, Any] = {"model": names[arm]} if several and arm in names else {}
        own |= {} if pairs is None else {"pairs": pairs}
        own |= {name: value for name, value in train.items() if learner is None or learner.uses(name)}
        shared = study.tune.shared if study.tune is not None and is_tuned(learner) and arm not in as_given else ()
        tuned = {name: own[name] for name in shared}
        settings = {**own, **dict.fromkeys(tuned, TUNED)}
        found[arm] = ArmSettings(settings, study.methods(arm), learner.name if learner else None, tuned)
    return found


def _model_names(study: Study, models: Mapping[str, ModelSource] | None) -> dict[str, str]:
    """Of the arms that use one. One model may have two names, and two models the same."""
    if models is None:
        return {arm: str(study.model_of(arm)) for arm in study.arms}
    used = {arm: models[arm].identity for arm in study.arms if study.uses_model(arm)}
    names = {models[arm].identity: models[arm].name for arm in used}
    counts = Counter(names.values())
    return {arm: names[one] + (f"@{one[:8]}" if counts[names[one]] > 1 else "") for arm, one in used.items()}


def rate_of(study: Study, arm: str) -> float:
    """The learning rate by which an arm is compared: methods may replace the run's."""
    return reduce(lambda lr, use: use.config.control_lr(lr), study.methods(arm), study.settings(arm).lr)


def is_tuned(learner: Learner | None) -> bool:
    """Whether an arm with this learner gets trials; simple baselines choose for themselves, on validation too."""
    return learner is None or learner.trained


def find_controls(arms: Mapping[str, ArmSettings], reference: str) -> dict[str, str | None]:
    """Each arm's control, which may be the reference; None where the study has none, and for arms without methods."""
    controls: dict[str, str | None] = {}
    for arm, own in arms.items():
        alike = [a for a in arms if a != arm and arms[a].settings == own.settings and not arms[a].learner]
        alike.sort(key=lambda a: a != reference)  # what is compared with the reference needs no second comparison
        idle = [a for a in alike if arms[a].methods and is_control(arms[a].methods, own.methods)]
        plain = [a for a in alike if not arms[a].methods]
        if arms[reference].methods and reference in alike:
            plain = []  # the study's own choice is to compare with these methods, at the same settings
        controls[arm] = next(iter(idle + plain), None) if own.methods else None
    return controls


def find_primaries(controls: Mapping[str, str | None], reference: str) -> dict[str, str | None]:
    """The arm that each is compared, ranked and judged with; None for the reference itself."""
    return {arm: None if arm == reference else control or reference for arm, control in controls.items()}


def find_unmatched(
    arms: Mapping[str, ArmSettings], controls: Mapping[str, str | None], reference: str
) -> tuple[str, ...]:
    """The arms whose methods and settings cannot be separated: they have no control, nor the reference's settings."""
    base = arms[reference]
    lone = (arm for arm, own in arms.items() if own.methods and not controls[arm])
    return tuple(arm for arm in lone if base.learner or arms[arm].settings != base.settings)


@dataclass(frozen=True)
class Difference:
    """A setting in which an arm differs from the reference.

    Args:
        control: the fair comparison, if the study has it; an arm without methods is its own.
        add: the line of a study file that would add a control.
    """

    arm: str
    reference: str
    setting: str
    value: Any
    reference_value: Any
    control: str | None
    add: str | None = None

    @property
    def ours(self) -> str:
        return setting_text(self.setting, self.value)

    @property
    def theirs(self) -> str:
        return setting_text(self.setting, self.reference_value)

    def __str__(self) -> str:
        found = f"{self.arm}: {self.setting} is {self.ours}, {self.reference} has {self.theirs}"
        if self.control == self.arm:
            return f"{found}; this arm is itself the control for that"
        if self.control:
            return f"{found}; like with like: compare with {self.control}"
        apart = f"{found}; no arm without methods has these settings, so method and setting cannot be told apart"
        return f"{apart}; add the arm `{self.add}`" if self.add else apart


def find_differences(
    arms: Mapping[str, ArmSettings],
    controls: Mapping[str, str | None],
    reference: str,
    missing: Mapping[str, str],
) -> tuple[Difference, ...]:
    """All differences from the reference that are not methods; simple baselines are left out."""
    base = arms[reference]
    return tuple(
        Difference(
            arm, reference, name, value, base.settings[name], controls[arm] if own.methods else arm, missing.get(arm)
        )
        for arm, own in arms.items()
        if not own.learner and not base.learner
        for name, value in own.settings.items()
        if value != base.settings[name]
    )


def setting_text(setting: str, value: Any) -> str:
    """A setting's value as messages show it."""
    if value is None:
        return "the model's own" if setting in ("attention", "attention_kernel") else "none"
    return str(value).lower() if isinstance(value, bool) else plain_setting(value)
