"""Arms that fairtune adds to a study: a control for settings that no arm without methods has, and a copy of the reference.

The copy has the reference's settings, methods and seeds, so that it makes pairs with it, but each of its runs draws its random
numbers from another one: what it differs by is noise (A/A).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Any

from fairtune.settings.sections import is_nullable
from fairtune.settings.values import LARGEST_SEED, LONGEST_NAME, RESERVED
from fairtune.study.audit import ArmSettings, find_unmatched, rate_of, settings_of
from fairtune.study.schema import Study

COPY = "again"
"""What the name of the copy adds to the reference's."""
SEEDS_APART = 1_000_000
"""What is added to a seed of the reference for the copy's run; as often as it takes to meet no other run's."""
MOST_NAMED = 2
"""Settings that the name of an added control spells out."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@+-]*")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def with_copy(study: Study) -> tuple[Study, str | None]:
    """The study with a copy of its reference, if it has `aa: true`, and the name of that arm."""
    if not study.aa:
        return study, None
    reference = study.compare.to
    name = free_name(f"{reference[: LONGEST_NAME - len(COPY) - 1]}-{COPY}", study.arms)
    return study.model_copy(update={"arms": {**study.arms, name: study.arms[reference]}}), name


def copy_seeds(seeds: Sequence[int]) -> dict[int, int]:
    """From what the copy's run of each seed draws its random numbers: no run of another arm draws from the same."""
    for apart in count(SEEDS_APART, SEEDS_APART):
        found = {seed: (seed + apart) % (LARGEST_SEED + 1) for seed in seeds}
        if not set(found.values()) & set(seeds):
            return found
    raise AssertionError("a study has far fewer seeds than there are numbers")


def missing_controls(study: Study) -> dict[str, str]:
    """Of each arm whose methods and settings cannot be told apart, the name of the control that it lacks."""
    raw = {arm: stated_settings(study, arm) for arm in study.arms}
    found: dict[str, str] = {}
    for arm in find_unmatched(raw, study.compare.to):
        alike = [found[other] for other in found if raw[other].settings == raw[arm].settings]
        changed = _changed(raw[arm].settings, raw[study.compare.to].settings)
        found[arm] = alike[0] if alike else free_name(_name(arm, changed), [*study.arms, *found.values()])
    return found


def with_controls(study: Study, missing: Mapping[str, str]) -> Study:
    """The study with the controls that are missing, each an arm without methods."""
    added: dict[str, Any] = {}
    for arm, name in missing.items():
        rate = {"lr": lr} if (lr := rate_of(study, arm)) != study.settings(arm).lr else {}
        added.setdefault(name, study.arms[arm].model_copy(update={"methods": (), "preset": None, **rate}))
    return study.model_copy(update={"arms": {**study.arms, **added}})


def arm_line(study: Study, arm: str, name: str, methods: str | None = None) -> str:
    """The line of a study file for an arm of this name with another's settings.

    Args:
        methods: as the file lists them; None has none.
    """
    own = study.arms[arm].model_dump(mode="json", exclude={"methods", "preset", "learner", "pairs"}, exclude_unset=True)
    if methods is None and (lr := rate_of(study, arm)) != study.settings(arm).lr:
        own["lr"] = lr
    parts = [
        f"{field}: {_yaml(value)}"
        for field, value in own.items()
        if value is not None or (field != "model" and is_nullable(field))
    ]
    parts += [f"methods: {methods}"] if methods else []
    return f"{name}: {{{', '.join(parts)}}}"


def stated_settings(study: Study, arm: str) -> ArmSettings:
    """An arm's settings as the study states them, before lengths and models are looked up."""
    return settings_of(study, arm, {"model": str(study.model_of(arm))}, whole=True)


def _changed(own: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    return {setting: value for setting, value in own.items() if value != base[setting]}


def _name(arm: str, changed: Mapping[str, Any]) -> str:
    """A name that says what the arm is a baseline for: its settings where they are few and short, else the arm."""
    words = [f"{setting.replace('_', '-')}-{setting_word(value)}" for setting, value in changed.items()]
    named = "-".join(["baseline", *words])
    simple = len(words) <= MOST_NAMED and len(named) <= LONGEST_NAME // 2
    return named if simple else f"baseline-for-{arm}"[:LONGEST_NAME]


def setting_word(value: Any) -> str:
    """A value in the characters that the name of an arm may have: 0.00015 is 15e-5."""
    if isinstance(value, float):
        number = Decimal(repr(value)).normalize()
        _, digits, exponent = number.as_tuple()
        return f"{number:f}" if int(exponent) >= 0 else f"{''.join(map(str, digits))}e{exponent}"
    return re.sub(r"[^A-Za-z0-9_]+", "-", str(value)).strip("-") if value is not None else "none"


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """The name, with a number where it is taken: file systems may not tell upper and lower case apart."""
    wanted = wanted[:LONGEST_NAME]
    used, name, number = {*(other.lower() for other in taken), *RESERVED}, wanted, 2
    while name.lower() in used:
        end = f"-{number}"
        name, number = wanted[: LONGEST_NAME - len(end)] + end, number + 1
    return name


def _yaml(value: Any) -> str:
    """A value as a study file has it, on one line."""
    if isinstance(value, float):
        number = Decimal(repr(value)).normalize()
        return f"{number:e}".replace("e+", "e") if 0 < abs(value) < 1e-3 else f"{number:f}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_yaml(part)}' for name, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)
