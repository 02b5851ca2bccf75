"""What can be wrong with the simple baselines of a study, as far as the file alone tells.

A learner takes few settings. One that it would silently ignore is refused, so that nobody believes that it did something.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtune.core.errors import ModelError
from fairtune.models.presets import parse_preset, preset_name
from fairtune.settings.learners import LEARNERS, Learner
from fairtune.settings.sections import Train
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text


def learner_name_problems(data: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """An arm has one source of what it learns with, and one that has a learner's name is that learner."""
    arms = data.get("arms")
    found: list[Problem] = []
    for name, arm in arms.items() if isinstance(arms, dict) else ():
        if not isinstance(arm, dict):
            continue
        learner, preset = arm.get("learner"), arm.get("preset")
        if learner is not None and preset is not None:
            path: Path = ("arms", name, "preset")
            found.append(Problem(origins.of(path), dotted(path), "given together with `learner`; keep one of them"))
        named = preset if isinstance(preset, str) else name
        if learner is None and "methods" in arm and named in LEARNERS and preset is None:
            path = ("arms", name, "methods")
            message = (
                f"'{named}' is the name of a simple baseline, which has no methods; remove them, or rename the arm"
            )
            found.append(Problem(origins.of(path), dotted(path), message))
    return found


def learner_problems(study: Study, origins: Origins) -> list[Problem]:
    """What a study asks of a learner that it cannot do, or that means nothing to it."""
    found: list[Problem] = []
    for arm in study.arms:
        learner = study.learner(arm)
        if learner is not None:
            found += [
                Problem(origins.of(path), dotted(path), reason)
                for path, reason in _reasons(study, arm, learner).items()
            ]
    for arm, own in study.arms.items():
        if getattr(own, "pairs", None) is not None and study.pairs(arm) is None:
            path: Path = ("arms", arm, "pairs")
            found.append(Problem(origins.of(path), dotted(path), "only 'setfit' learns from pairs; remove it"))
    reference = study.learner(study.compare.to) if study.compare.to in study.arms else None
    if reference is not None and not reference.trained:
        reasons = {
            "aa": "draws no random numbers, so a second copy would show nothing",
            "time": "has no steps to be timed",
        }
        found += [
            Problem(
                origins.of((name,)),
                name,
                f"{study.compare.to}, which the others are compared to, {why}; remove `{name}`, or compare to a trained arm",
            )
            for name, why in reasons.items()
            if getattr(study, name)
        ]
    return found


def _reasons(study: Study, arm: str, learner: Learner) -> dict[Path, str]:
    """Why each part of an arm cannot be."""
    found: dict[Path, str] = {}
    if study.methods(arm):
        found["arms", arm, "methods"] = (
            f"'{learner.name}' is a simple baseline and not fine-tuned, so it has no methods; remove them, or `learner`"
        )
    if is_text(study.task):
        found["arms", arm] = (
            f"'{learner.name}' tells classes apart, and a language-model task has none; remove this arm"
        )
        return found
    own = study.arms[arm]
    for field in Train.model_fields:
        if getattr(own, field) is not None and not learner.uses(field):
            found["arms", arm, field] = f"this means nothing to '{learner.name}', {_why(field)}; remove it"
    if getattr(own, "model", None) is not None and not learner.encoder:
        found["arms", arm, "model"] = f"'{learner.name}' uses no model; remove it"
    elif learner.encoder and (preset := _preset(study, arm)) is not None:
        found["arms", arm] = (
            f"'{learner.name}' needs a pretrained encoder, and {preset} is trained from scratch; remove this arm, or choose a "
            "pretrained model"
        )
    return found


def _why(field: str) -> str:
    return "which reads whole texts" if field == "max_length" else "which is fitted at once, not trained step by step"


def _preset(study: Study, arm: str) -> str | None:
    """The preset that an arm would start from; None where it is a checkpoint, or no model at all."""
    named = study.model_of(arm)
    try:
        preset = parse_preset(named if isinstance(named, str) else named.model_dump(exclude_none=True))
    except ModelError:
        return None  # reported where it stands
    return None if preset is None else preset_name(preset)
