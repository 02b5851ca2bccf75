"""What a plan stands on: the data and the model that a study names, found and checked before run 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fairtune.errors import FairtuneError
from fairtune.models.presets import preset_remarks
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.suiting import Use, require_suited
from fairtune.models.tokenizers import TokenizerSource, TrainingText, find_tokenizer, fitted
from fairtune.study.auto_length import block_lengths, resolve_lengths
from fairtune.study.model_schema import TrainedTokenizer
from fairtune.study.schema import Study
from fairtune.tasks import Task, TaskFacts, load_task
from fairtune.tasks.contamination import check_contamination
from fairtune.tasks.corpora import Corpus, is_text, load_corpus
from fairtune.tasks.text_task import TextTask

ATTENTION: tuple[Use, ...] = ("causal", "bidirectional")


@dataclass(frozen=True)
class Grounds:
    """What was found.

    Args:
        study: with numbers for its lengths.
        tokenizer: None where it is simply the checkpoint's own.
        examples: training examples of each arm: rows of a task, or blocks of text.
        notes: what a reader of its results must be told.
        lengths: what `max_length` became where it was not a number, and why.
    """

    study: Study
    task: TaskFacts
    model: ModelSource
    tokenizer: TokenizerSource | None
    examples: dict[str, int]
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()


def find_grounds(study: Study) -> Grounds:
    """Read the data and find the model.

    Raises:
        FairtuneError: one of them is not there or not fit, or they do not fit each other.
    """
    grounds = _text(study) if is_text(study.task) else _classification(study)
    for arm in grounds.study.arms:
        longest = grounds.study.settings(arm).longest
        if grounds.model.positions is not None and longest > grounds.model.positions:
            raise FairtuneError(
                f"arm '{arm}': max_length is {longest}, but model '{grounds.model.name}' has {grounds.model.positions} "
                "positions; lower max_length."
            )
    _require_enough(grounds)
    if grounds.model.preset is not None:
        return replace(grounds, notes=(*grounds.notes, *preset_remarks(grounds.model.preset)))
    for use in _uses(grounds):
        require_suited(grounds.model, use)
    return grounds


def _require_enough(grounds: Grounds) -> None:
    """Refuse an arm with a method that cannot work with so few examples, or such classes."""
    for arm in grounds.study.arms:
        asked = grounds.study.settings(arm).examples
        examples = grounds.examples[arm] if asked is None else min(asked, grounds.examples[arm])
        for use in grounds.study.methods(arm):
            if problem := use.config.data_problem(examples, grounds.task.labels):
                raise FairtuneError(f"arm '{arm}', method '{use.name}': {problem}")


def _uses(grounds: Grounds) -> list[Use]:
    """What is asked of a checkpoint that not every one can do."""
    if is_text(grounds.study.task):
        return ["language_model"]
    asked = {grounds.study.settings(arm).attention for arm in grounds.study.arms}
    return [use for use in ATTENTION if use in asked]


def _classification(study: Study) -> Grounds:
    data = load_task(**study.data())
    notes = check_contamination(data, study.train_on, study.allow_contamination)
    text = TrainingText(data.splits["train"].identity, lambda: _texts(data))
    model, tokenizer = named_model(study), None
    if study.tokenizer is not None or model.preset is not None:
        model, tokenizer = tokenized(study, model, text)
    study, model, lengths = resolve_lengths(study, data, model, tokenizer)
    facts = data.facts()
    return Grounds(study, facts, model, tokenizer, dict.fromkeys(study.arms, facts.rows["train"]), notes, lengths)


def _texts(data: Task) -> Iterator[list[str]]:
    for texts in data.splits["train"].texts:
        yield list(texts)


def _text(study: Study) -> Grounds:
    corpus = load_corpus(study.task)
    model, tokenizer = tokenized(study, named_model(study), text_of(corpus))
    study, lengths = block_lengths(study, model)
    task = TextTask(corpus, Path(tokenizer.folder))
    examples = {arm: task.examples(study.settings(arm)) for arm in study.arms}
    return Grounds(study, task.facts(study.settings(study.compare.to)), model, tokenizer, examples, (), lengths)


def text_of(corpus: Corpus) -> TrainingText:
    return TrainingText(corpus.identity("train"), lambda: corpus.documents("train"))


def named_model(study: Study) -> ModelSource:
    """The model as the study names it."""
    return find_model(study.model if isinstance(study.model, str) else study.model.model_dump(exclude_none=True))


def tokenized(study: Study, model: ModelSource, text: TrainingText) -> tuple[ModelSource, TokenizerSource]:
    """The model and the tokenizer, which fit each other."""
    given = study.tokenizer
    tokenizer = find_tokenizer(given.train if isinstance(given, TrainedTokenizer) else given, model, text)
    return fitted(model.fetched(), tokenizer), tokenizer
