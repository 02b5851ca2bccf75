"""What can be wrong between the fields of a study, as far as the file alone tells.

Names that lead nowhere, arms that say too much or too little, settings that mean nothing for a kind of task, so that nobody
believes that they did something, and models and tokenizers that cannot be.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from fairtune.core.errors import ModelError, nearest, one_of, shown
from fairtune.methods.arms import family_of, named_arms
from fairtune.methods.registry import conflicts, registered
from fairtune.models.presets import parse_preset, preset_name
from fairtune.models.tokenizers import NO_TOKENIZER, SMALLEST, too_few
from fairtune.settings.model import TrainedTokenizer
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.settings.values import LONGEST_NAME, MOST_RUNS, NAME
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.catalogue import task_names
from fairtune.tasks.corpora import corpus_names, is_text
from fairtune.tasks.definitions import ALIASES

NEAR = 0.8
"""How alike two names are, of 1, when one is taken for a slip of the other."""


def reference_problems(data: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """`compare.to` names an arm of the study."""
    arms, compare = data.get("arms"), data.get("compare", {})
    if not isinstance(arms, dict) or not arms or not isinstance(compare, dict):
        return []
    to = compare.get("to", "baseline")
    if not isinstance(to, str) or to in arms or len(to) > LONGEST_NAME:
        return []  # what is not a name is reported by its type
    names = [str(arm) for arm in arms]
    return [
        Problem(
            origins.of(("compare", "to")),
            "compare.to",
            f"no arm is called {shown(to)}; arms: {one_of(names)}.{nearest(str(to), names)}",
        )
    ]


def size_problems(study: Study, origins: Origins) -> list[Problem]:
    """The runs can be counted, and their folders told apart."""
    found = []
    count = len(study.arms) * len(study.seeds)
    if count > MOST_RUNS:
        message = f"{len(study.arms):,} arms x {len(study.seeds):,} seeds are {count:,} runs; a study has at most {MOST_RUNS:,}"
        found.append(Problem(origins.of(("seeds",)), "seeds", f"{message}; use fewer seeds, or several studies"))
    first: dict[str, str] = {}
    for arm in study.arms:
        earlier = first.setdefault(arm.lower(), arm)
        if earlier != arm:
            path: Path = ("arms", arm)
            message = f"differs from '{earlier}' only in upper and lower case, and file systems may not tell their folders apart"
            found.append(Problem(origins.of(path), dotted(path), f"{message}; rename one"))
    return found


def conflict_problems(study: Study, origins: Origins) -> list[Problem]:
    """Each method of an arm can work with the others."""
    found = []
    for arm in study.arms:
        for position, reason in conflicts(study.methods(arm)):
            path: Path = ("arms", arm, "methods", position)
            found.append(Problem(origins.of(path), dotted(path), reason))
    return found


def arm_problems(data: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """An arm has one source of methods, and none that its name promises is silently a baseline."""
    arms = data.get("arms")
    if not isinstance(arms, dict):
        return []
    found = []
    for name, arm in arms.items():
        path: Path = ("arms", name)
        if arm is not None and not isinstance(arm, dict):
            continue  # reported by its type
        preset = (arm or {}).get("preset")
        if "methods" in (arm or {}):
            if preset is not None:
                path = (*path, "preset")
                found.append(Problem(origins.of(path), dotted(path), "given together with `methods`; keep one of them"))
        elif preset is None and (arm or {}).get("learner") is None and (promise := _broken_promise(name)):
            message = f"has neither `methods` nor `preset`, so it would train as a baseline, but {promise}"
            found.append(
                Problem(origins.of(path), dotted(path), f"{message}, or `methods: []` if it is meant to have none")
            )
    return found


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
    family = family_of(name)
    if family:
        members = [arm for arm in with_methods if arm.startswith(family)]
        return f"its name begins with '{family}', as these named arms: {one_of(members)}. Write `preset: NAME`"
    for method in registered():
        if f"{folded}-".startswith(f"{method.replace('_', '-')}-"):
            return f"its name is that of a method. Write `methods: [{method}]`"
    return None


CLASSIFY = "this is for tasks that classify; text for language models is taken as it is"
TOKENS = "text for language models is counted in tokens, not in examples; use tokens, or leave it out"
FOR_TEXT: dict[Path, str] = {
    ("train_on",): CLASSIFY,
    ("dedupe",): CLASSIFY,
    ("allow_contamination",): CLASSIFY,
    ("compare", "target"): "this is for tasks that classify; use target_loss, a validation loss, or remove it",
    ("train", "examples"): TOKENS,
    ("train", "eval_examples"): "a language model is validated and tested on all of the held-out text; leave it out",
    (
        "train",
        "attention",
    ): "this is for classifiers; a language model is always causal, or it would see what it has to predict",
}
FOR_CLASSES: dict[Path, str] = {
    ("prompts",): "only language models go on with a text; remove it",
    ("compare", "target_loss"): "this is for language models; use target, a validation score, or remove it",
    ("train", "tokens"): "this counts the training text of language models; for classification use examples",
}


def has_known_task(study: Study) -> bool:
    return not isinstance(study.task, str) or study.task in {*corpus_names(), *task_names(), *ALIASES}


def kind_problems(study: Study, origins: Origins) -> list[Problem]:
    """What a study sets, or does in an arm, although its kind of task has no use for it."""
    if not has_known_task(study):
        return []  # whether it means anything depends on what the name was meant to be
    refused = FOR_TEXT if is_text(study.task) else FOR_CLASSES
    found = []
    for path, reason in refused.items():
        places = [path, *(("arms", arm, path[1]) for arm in study.arms if path[0] == "train")]
        found += [Problem(origins.of(place), dotted(place), reason) for place in places if _is_set(study, place)]
    return [*found, *_method_problems(study, origins)]


WORK = {"classify": "classifiers", TEXT: "language models"}


def _method_problems(study: Study, origins: Origins) -> list[Problem]:
    kind = TEXT if is_text(study.task) else "classify"
    found = []
    for arm in study.arms:
        for position, use in enumerate(study.methods(arm)):
            if kind not in registered()[use.name].kinds:
                path: Path = ("arms", arm, "methods", position)
                reason = f"'{use.name}' does not work with {WORK[kind]}; remove it, or choose another task"
                found.append(Problem(origins.of(path), dotted(path), reason))
    return found


def _is_set(study: Study, path: Path) -> bool:
    value: object = study
    for part in path:
        value = value.get(part) if isinstance(value, dict) else getattr(value, str(part))
    return value not in (None, False)


def model_problems(study: Study, origins: Origins) -> list[Problem]:
    """An unknown preset, one without a tokenizer or too short for its inputs, and a tokenizer that cannot be."""
    found = _own_models(study, origins)
    if isinstance(study.tokenizer, TrainedTokenizer) and study.tokenizer.train < SMALLEST:
        path: Path = ("tokenizer", "train")
        found.append(Problem(origins.of(path), dotted(path), too_few(study.tokenizer.train)))
    try:
        preset = parse_preset(
            study.model if isinstance(study.model, str) else study.model.model_dump(exclude_none=True)
        )
    except ModelError as error:
        reason = str(error).removeprefix("model: ").removesuffix(".")
        path = ("model",) if isinstance(study.model, str) else ("model", "preset")
        return [*found, Problem(origins.of(path), dotted(path), reason)]
    if preset is None:
        return found
    if study.tokenizer is None:
        found.append(Problem(origins.of(("model",)), "model", NO_TOKENIZER))
    for path, length in _lengths(study).items():
        if length > preset["context"]:
            found.append(
                Problem(
                    origins.of(path),
                    dotted(path),
                    f"{length} tokens are more than the {preset['context']} positions of {preset_name(preset)}; lower it, or "
                    "set the preset's `context`",
                )
            )
    return found


def _own_models(study: Study, origins: Origins) -> list[Problem]:
    """An arm's own model is a checkpoint, since what else it would need is said for the whole study."""
    found = []
    for arm, own in study.arms.items():
        name, path = getattr(own, "model", None), ("arms", arm, "model")
        if name is None:
            continue
        if is_text(study.task):
            reason = (
                "language models share one model and one tokenizer, or their losses could not be compared; remove it"
            )
        elif study.tokenizer is not None:
            reason = "the study's `tokenizer` is for its own model; remove one of the two"
        elif _is_preset(name):
            reason = f"'{name}' is a preset, which has no tokenizer; an arm's own model must be a checkpoint"
        else:
            continue
        found.append(Problem(origins.of(path), dotted(path), reason))
    return found


def _is_preset(name: str) -> bool:
    try:
        return parse_preset(name) is not None
    except ModelError:
        return True


def _lengths(study: Study) -> dict[Path, int]:
    """The longest inputs that the study asks for, by where it does; a language model without any takes what its model takes."""
    found: dict[Path, int] = {}
    for arm, own in study.arms.items():
        length, given = study.settings(arm).max_length, "max_length" in study.train.model_fields_set
        if isinstance(length, str) or (getattr(own, "max_length", None) is None and not given and is_text(study.task)):
            continue
        path = ("arms", arm, "max_length") if getattr(own, "max_length", None) is not None else ("train", "max_length")
        found[path] = length
    return found
