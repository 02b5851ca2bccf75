"""What is wrong with a study's model and tokenizer, as far as the file alone tells."""

from __future__ import annotations

from fairtune.core.errors import ModelError
from fairtune.models.presets import parse_preset, preset_name
from fairtune.models.tokenizers import NO_TOKENIZER, SMALLEST, too_few
from fairtune.settings.model import TrainedTokenizer
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text


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
