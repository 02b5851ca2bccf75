"""Arms that fairtune adds to a study: controls, a copy of the reference, and matched controls of tuned arms.

A *control* has the settings of an arm and no methods. The *copy* has the reference's settings, methods and seeds, but each of its
runs draws other random numbers: what it differs by is noise (A/A). A *matched control* is for an arm that chose other settings than
its partner by trials: the partner with the arm's settings. Choosing by a few trials is itself a matter of luck, so a verdict has to
hold against both: the partner as it was tuned, and the partner with the same settings.
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
from fairtune.study.audit import arm_settings, find_controls, find_unmatched, rate_of
from fairtune.study.schema import Study

SEEDS_APART = 1_000_000
"""What is added to a seed of the reference for the copy's run, as often as it takes to meet no other run's."""
MOST_NAMED = 2
"""Settings that the name of an added control spells out."""
OWN = {"methods", "preset"}
"""What is not a setting in the fields of an arm."""


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
