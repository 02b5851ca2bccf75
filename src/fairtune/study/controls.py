"""Which arm is whose control, what arms differ in besides methods, and the arms that fairtune adds.

The *control* of an arm has its very settings without the effect of its methods: the arm in which they do nothing (an idle control),
else one without methods. It is decided once, when the study is planned. An arm's primary comparison is made with its control; where
there is none, with the reference.

The *copy* has the reference's settings, methods and seeds, but each of its runs draws other random numbers: what it differs by is
noise (A/A). A *matched control* is for an arm that chose other settings than its partner by trials: the partner with the arm's
settings. Choosing by a few trials is itself a matter of luck, so a verdict has to hold against both partners.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from itertools import count
from typing import Any

from fairtune.core.numbers import setting as plain_setting
from fairtune.methods.config import MethodUse
from fairtune.methods.registry import is_control
from fairtune.models.sources import ModelSource
from fairtune.settings.learners import Learner
from fairtune.settings.sections import is_nullable
from fairtune.settings.values import LARGEST_SEED, LONGEST_NAME, RESERVED
from fairtune.study.schema import Study

TUNED = "tuned"
"""The value, in comparisons, of a setting that every arm chose by trials of its own."""
SEEDS_APART = 1_000_000
"""What is added to a seed of the reference for the copy's run, as often as it takes to meet no other run's."""
MOST_NAMED = 2
"""Settings that the name of an added control spells out."""
OWN = {"methods", "preset"}
"""What is not a setting in the fields of an arm."""


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


def missing_controls(study: Study) -> dict[str, tuple[str, Any]]:
    """For each arm whose methods and settings cannot be separated, the control that it lacks: its name and the arm."""
    stated, reference = arm_settings(study), study.compare.to
    base = {**study.settings(reference).model_dump(mode="json"), **stated[reference].settings}
    found: dict[str, tuple[str, Any]] = {}
    for arm in find_unmatched(stated, find_controls(stated, reference), reference):
        own = stated[arm].settings
        if same := [control for other, control in found.items() if stated[other].settings == own]:
            found[arm] = same[0]
            continue
        changed = {setting: value for setting, value in own.items() if value != base[setting]}
        named = _named("baseline", changed)
        short = len(changed) <= MOST_NAMED and len(named) <= LONGEST_NAME // 2
        taken = [*study.arms, *(name for name, _ in found.values())]
        rate = {"lr": lr} if (lr := rate_of(study, arm)) != study.settings(arm).lr else {}
        plain = study.arms[arm].model_copy(update={"methods": (), "preset": None, **rate})
        found[arm] = free_name(named if short else f"baseline-for-{arm}", taken), plain
    return found


def with_arms(study: Study, added: Mapping[str, Any]) -> Study:
    return study.model_copy(update={"arms": {**study.arms, **added}})


def trained_study(study: Study) -> Study:
    """The study with the controls that it asks for."""
    return with_arms(study, dict(missing_controls(study).values())) if study.controls else study


def copy_seeds(seeds: Sequence[int]) -> dict[int, int]:
    """The seed that the copy's run draws from, by seed of the reference: no run of another arm has the same."""
    tried = ({seed: (seed + apart) % (LARGEST_SEED + 1) for seed in seeds} for apart in count(SEEDS_APART, SEEDS_APART))
    return next(found for found in tried if not set(found.values()) & set(seeds))


def matched_controls(study: Study, partners: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The matched control of every tuned arm whose choice is not its partner's, and those of them that are new."""
    arms, matched = dict(study.arms), dict[str, str]()
    for arm, partner in partners.items():
        own, theirs = study.settings(arm), study.settings(partner)
        chosen = {name: getattr(own, name) for name in (study.tune.shared if study.tune else ())}
        if all(getattr(theirs, name) == value for name, value in chosen.items()):
            continue
        wanted = arms[partner].model_copy(update=chosen)
        same = (name for name, found in arms.items() if name != arm and _trained(found) == _trained(wanted))
        matched[arm] = next(same, None) or free_name(_named(partner, chosen), arms)
        arms.setdefault(matched[arm], wanted)
    return matched, {name: arm for name, arm in arms.items() if name not in study.arms}


def _trained(arm: Any) -> tuple[dict[str, Any], list[Any]]:
    """What decides how an arm trains."""
    return arm.model_dump(exclude=OWN, exclude_none=True), list(arm.methods)


def arm_line(name: str, arm: Any, methods: Sequence[Any] = ()) -> str:
    """The line of a study file for an arm with the settings of this one, and with these methods."""
    own = arm.model_dump(mode="json", exclude={*OWN, "learner", "pairs"}, exclude_unset=True)
    kept = {key: value for key, value in own.items() if value is not None or (key != "model" and is_nullable(key))}
    return f"{name}: {_yaml({**kept, **({'methods': list(methods)} if methods else {})})}"


def _named(begin: str, settings: Mapping[str, Any]) -> str:
    """A name that says what was changed: `baseline-lr-1e-4`."""
    return "-".join([begin, *(f"{name.replace('_', '-')}-{_word(value)}" for name, value in settings.items())])


def _word(value: Any) -> str:
    """A value in the characters that the name of an arm may have: 0.00015 is 15e-5."""
    if isinstance(value, float):
        number = Decimal(repr(value)).normalize()
        _, digits, exponent = number.as_tuple()
        return f"{number:f}" if int(exponent) >= 0 else f"{''.join(map(str, digits))}e{exponent}"
    return re.sub(r"[^A-Za-z0-9_]+", "-", str(value)).strip("-") if value is not None else "none"


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """The name, with a number where it is taken; file systems may ignore case."""
    used = {*(other.lower() for other in taken), *RESERVED}
    ends = ("" if number == 1 else f"-{number}" for number in count(1))
    names = (wanted[: LONGEST_NAME - len(end)] + end for end in ends)
    return next(name for name in names if name.lower() not in used)


def _yaml(value: Any) -> str:
    """A value as a study file has it, on one line."""
    if isinstance(value, float):
        number = Decimal(repr(value)).normalize()
        return f"{number:e}".replace("e+", "e") if 0 < abs(value) < 1e-3 else f"{number:f}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_yaml(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_./@+-]*", value)
    return value if plain and value.lower() not in ("null", "true", "false") else json.dumps(value)
