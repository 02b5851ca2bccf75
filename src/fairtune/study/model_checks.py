"""What is wrong with a study's model and tokenizer, as far as the file alone tells."""

from __future__ import annotations

from fairtune.errors import ModelError
from fairtune.models.presets import parse_preset, preset_name
from fairtune.models.tokenizers import NO_TOKENIZER, SMALLEST, too_few
from fairtune.study.model_schema import TrainedTokenizer
from fairtune.study.problems import Origins, Problem, dotted
from fairtune.study.schema import Study
from fairtune.study.yaml_tree import Path
from fairtune.tasks.corpora import is_text


def model_problems(study: Study, origins: Origins) -> list[Problem]:
    """An unknown preset, one without a tokenizer or too short for its inputs, and a tokenizer that cannot be."""
    found = []
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
