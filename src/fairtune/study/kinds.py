"""Settings and methods that mean nothing for a kind of task are refused, so that nobody believes that they did something."""

from __future__ import annotations

from fairtune.methods.registry import registered
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.catalogue import task_names
from fairtune.tasks.corpora import corpus_names, is_text
from fairtune.tasks.definitions import ALIASES

CLASSIFY = "this is for tasks that classify; text for language models is taken as it is"
TOKENS = "text for language models is counted in tokens, not in examples; use tokens, or leave it out"
FOR_TEXT: dict[Path, str] = {
    ("train_on",): CLASSIFY,
    ("dedupe",): CLASSIFY,
    ("allow_contamination",): CLASSIFY,
    ("train", "examples"): TOKENS,
    ("train", "eval_examples"): "a language model is validated and tested on all of the held-out text; leave it out",
    (
        "train",
        "attention",
    ): "this is for classifiers; a language model is always causal, or it would see what it has to predict",
}
FOR_CLASSES: dict[Path, str] = {
    ("prompts",): "only language models go on with a text; remove it",
    ("compare", "target_loss"): "this is for language models; remove it",
    ("train", "tokens"): "this counts the training text of language models; for classification use examples",
}


def kind_problems(study: Study, origins: Origins) -> list[Problem]:
    """What a study sets, or does in an arm, although its kind of task has no use for it."""
    if isinstance(study.task, str) and study.task not in {*corpus_names(), *task_names(), *ALIASES}:
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
