"""Settings that mean nothing for a study's kind of task are refused, so that nobody believes that they did something."""

from __future__ import annotations

from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text

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
    ): "a language model that sees the tokens it has to predict learns nothing; it is always causal",
}
FOR_CLASSES: dict[Path, str] = {
    ("prompts",): "only language models go on with a text; remove it",
    ("compare", "target_loss"): "this is for language models; remove it",
    ("train", "tokens"): "this counts the training text of language models; for classification use examples",
}


def kind_problems(study: Study, origins: Origins) -> list[Problem]:
    """What a study sets although its kind of task has no use for it."""
    refused = FOR_TEXT if is_text(study.task) else FOR_CLASSES
    found = []
    for path, reason in refused.items():
        places = [path, *(("arms", arm, path[1]) for arm in study.arms if path[0] == "train")]
        found += [Problem(origins.of(place), dotted(place), reason) for place in places if _is_set(study, place)]
    return found


def _is_set(study: Study, path: Path) -> bool:
    value: object = study
    for part in path:
        value = value.get(part) if isinstance(value, dict) else getattr(value, str(part))
    return value not in (None, False)
