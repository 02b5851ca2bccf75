"""What can be wrong with the arms of a study, as far as the file alone tells.

An arm whose name promises methods that it does not have, methods that exclude each other, and settings that a simple baseline
would ignore.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fairtune.core.errors import ModelError, nearest, one_of, shown
from fairtune.methods.arms import family_of, named_arms
from fairtune.methods.registry import conflicts, registered
from fairtune.models.presets import parse_preset
from fairtune.settings.learners import LEARNERS, Learner
from fairtune.settings.sections import Train
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.settings.values import LONGEST_NAME, NAME
from fairtune.study.schema import Study
from fairtune.study.study_checks import Fault
from fairtune.tasks.corpora import is_text

NEAR = 0.8
"""How alike two names are, of 1, when one is taken for a slip of the other."""


def written_arm_problems(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with arms as they are written, before named arms are resolved; the schema checks types."""
    arms, compare = data.get("arms"), data.get("compare", {})
    to = compare.get("to", "baseline") if isinstance(compare, dict) else None
    if not isinstance(arms, dict):
        return
    if arms and isinstance(to, str) and to not in arms and len(to) <= LONGEST_NAME:
        yield ("compare", "to"), f"no arm is called {shown(to)}; arms: {one_of(arms)}.{nearest(to, map(str, arms))}"
    for name, arm in arms.items():
        if arm is not None and not isinstance(arm, dict):
            continue
        own, path = arm or {}, ("arms", name)
        sources = [field for field in ("methods", "learner") if own.get(field) is not None or field == "methods" in own]
        if own.get("preset") is not None and sources:
            yield (*path, "preset"), f"given together with `{sources[0]}`; keep one of them"
        elif not sources and own.get("preset") is None and (promise := _broken_promise(name)):
            begin = "has neither `methods` nor `preset`, so it would train as a baseline"
            yield path, f"{begin}, but {promise}, or `methods: []` if it is meant to have none"
        elif sources == ["methods"] and name in LEARNERS:
            reason = f"'{name}' is the name of a simple baseline, which has no methods; remove them, or rename the arm"
            yield (*path, "methods"), reason


def _broken_promise(name: Any) -> str | None:
    """Why this name makes one expect methods, and what to write; None for a plain name."""
    known = named_arms()
    if not isinstance(name, str) or name in known or not re.fullmatch(NAME, name):
        return None
    folded = re.sub(r"[_+-]+", "-", name.lower())
    with_methods = [arm.name for arm in known.values() if arm.methods or arm.learner]
    variant_of = sorted((arm for arm in with_methods if folded.startswith(f"{arm}-")), key=len, reverse=True)
    close = variant_of or difflib.get_close_matches(folded, with_methods, n=1, cutoff=NEAR)
    if close:
        return f"its name is close to a named arm's. Did you mean '{close[0]}'? Write that, or `preset: {close[0]}`"
    if family := family_of(name):
        members = [arm for arm in with_methods if arm.startswith(family)]
        return f"its name begins with '{family}', as these named arms: {one_of(members)}. Write `preset: NAME`"
    own = next((m for m in registered() if f"{folded}-".startswith(f"{m.replace('_', '-')}-")), None)
    return own and f"its name is that of a method. Write `methods: [{own}]`"


def arm_problems(study: Study) -> Iterator[Fault]:
    """What is wrong with arms whose fields are each right by themselves."""
    names: dict[str, str] = {}
    for arm in study.arms:
        if (earlier := names.setdefault(arm.lower(), arm)) != arm:
            differs = f"differs from '{earlier}' only in upper and lower case"
            yield ("arms", arm), f"{differs}, and their folders may be the same; rename one"
        for field, reason in _problems(study, arm):
            yield ("arms", arm, *field), reason
    reference = study.compare.to
    fitted = study.learner(reference) if reference in study.arms else None
    reasons = {"aa": "draws no random numbers, so a second copy would show nothing", "time": "has no steps to be timed"}
    for name, why in reasons.items() if fitted is not None and not fitted.trained else ():
        if getattr(study, name):
            begin = f"{reference}, which the others are compared to, {why}"
            yield (name,), f"{begin}; remove `{name}`, or compare to a trained arm"


def _problems(study: Study, arm: str) -> Iterator[Fault]:
    text, uses, learner, own = is_text(study.task), study.methods(arm), study.learner(arm), study.arms[arm]
    kind, work = (TEXT, "language models") if text else ("classify", "classifiers")
    for position, reason in conflicts(uses):
        yield ("methods", position), reason
    for position, use in enumerate(uses):
        if kind not in registered()[use.name].kinds:
            yield ("methods", position), f"'{use.name}' does not work with {work}; remove it, or choose another task"
    if learner is not None:
        yield from _learner_problems(study, arm, learner)
    if getattr(own, "pairs", None) is not None and study.pairs(arm) is None:
        yield ("pairs",), "only 'setfit' learns from pairs; remove it"
    model = getattr(own, "model", None)
    if model is None:
        return
    if text:
        why = "language models share one model and one tokenizer, or their losses could not be compared"
        yield ("model",), f"{why}; remove it"
    elif study.tokenizer is not None:
        yield ("model",), "the study's `tokenizer` is for its own model; remove one of the two"
    elif is_preset(model):
        yield ("model",), f"'{model}' is a preset, which has no tokenizer; an arm's own model must be a checkpoint"


def is_preset(model: Any) -> bool:
    """Whether a model is, or was meant to be, one that is trained from scratch."""
    try:
        return parse_preset(model) is not None
    except ModelError:
        return True


def _learner_problems(study: Study, arm: str, learner: Learner) -> Iterator[Fault]:
    """What an arm asks of a learner that it cannot do, or that means nothing to it."""
    name, own = learner.name, study.arms[arm]
    if study.methods(arm):
        reason = f"'{name}' is a simple baseline and not fine-tuned, so it has no methods; remove them, or `learner`"
        yield ("methods",), reason
    if is_text(study.task):
        yield (), f"'{name}' tells classes apart, and a language-model task has none; remove this arm"
        return
    for field in Train.model_fields:
        if getattr(own, field) is not None and not learner.uses(field):
            why = "which reads whole texts" if field == "max_length" else "which is not trained step by step"
            yield (field,), f"this means nothing to '{name}', {why}; remove it"
    if not learner.encoder and getattr(own, "model", None) is not None:
        yield ("model",), f"'{name}' uses no model; remove it"
    if learner.encoder and is_preset(study.model_of(arm)):
        begin = f"'{name}' needs a pretrained encoder, and the study's model is trained from scratch"
        yield (), f"{begin}; remove this arm, or choose a pretrained model"
