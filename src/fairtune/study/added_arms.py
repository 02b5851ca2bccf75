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


def missing_controls(study: Study) -> dict[str, str]:
    """For each arm whose methods and settings cannot be separated, the name of the control that it lacks."""
    stated, reference = arm_settings(study), study.compare.to
    base = {**study.settings(reference).model_dump(mode="json"), **stated[reference].settings}
    found: dict[str, str] = {}
    for arm in find_unmatched(stated, find_controls(stated, reference), reference):
        own = stated[arm].settings
        same = [name for other, name in found.items() if stated[other].settings == own]
        changed = {setting: value for setting, value in own.items() if value != base[setting]}
        named = _named("baseline", changed)
        short = len(changed) <= MOST_NAMED and len(named) <= LONGEST_NAME // 2
        wanted = named if short else f"baseline-for-{arm}"
        found[arm] = same[0] if same else free_name(wanted, [*study.arms, *found.values()])
    return found


def plain_arm(study: Study, arm: str) -> Any:
    """An arm's settings without its methods, at the rate by which it is compared."""
    rate = {"lr": lr} if (lr := rate_of(study, arm)) != study.settings(arm).lr else {}
    return study.arms[arm].model_copy(update={"methods": (), "preset": None, **rate})


def trained_study(study: Study) -> Study:
    """The study with the controls that it asks for."""
    added: dict[str, Any] = {}
    for arm, name in missing_controls(study).items() if study.controls else ():
        added.setdefault(name, plain_arm(study, arm))
    return study.model_copy(update={"arms": {**study.arms, **added}})


def with_copy(study: Study) -> tuple[Study, str | None]:
    """The study with a copy of its reference, if it has `aa: true`, and the name of that arm."""
    if not study.aa:
        return study, None
    reference = study.compare.to
    name = free_name(f"{reference[: LONGEST_NAME - 6]}-again", study.arms)
    return study.model_copy(update={"arms": {**study.arms, name: study.arms[reference]}}), name


def copy_seeds(seeds: Sequence[int]) -> dict[int, int]:
    """The seed that the copy's run draws from, by seed of the reference: no run of another arm has the same."""
    tried = ({seed: (seed + apart) % (LARGEST_SEED + 1) for seed in seeds} for apart in count(SEEDS_APART, SEEDS_APART))
    return next(found for found in tried if not set(found.values()) & set(seeds))


def add_matched_controls(
    study: Study, primaries: Mapping[str, str | None], copy: str | None
) -> tuple[Study, dict[str, str], dict[str, str]]:
    """A tuned study with a matched control for every arm whose choice is not its partner's.

    Args:
        primaries: the arm that each is compared with.
        copy: the copy of the reference, which chose nothing of its own.

    Returns:
        The study, the matched control of each arm that needs one, and the partner of each control that was added.
    """
    arms, controls, partners = dict(study.arms), dict[str, str](), dict[str, str]()
    fields = study.tune.shared if study.tune is not None else {}
    for arm, partner in primaries.items():
        if partner is None or arm == copy or study.learner(arm) or study.learner(partner):
            continue  # a learner has no settings to share
        own, theirs = study.settings(arm), study.settings(partner)
        chosen = {name: getattr(own, name) for name in fields}
        if chosen == {name: getattr(theirs, name) for name in fields}:
            continue
        wanted = arms[partner].model_copy(update=chosen)
        same = next((name for name, found in arms.items() if name != arm and _trained(found) == _trained(wanted)), None)
        name = same or free_name(_named(partner, chosen), arms)
        if same is None:
            arms[name], partners[name] = wanted, partner
        controls[arm] = name
    return study.model_copy(update={"arms": arms}), controls, partners


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
