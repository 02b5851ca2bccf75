"""What a plan stands on: the data and the model that a study names, found and checked before run 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fairtune.core.errors import FairtuneError
from fairtune.models.capability import Capability, require_capable
from fairtune.models.presets import preset_remarks
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TokenizerSource, TrainingText, find_tokenizer, fitted, tokenizer_folder
from fairtune.settings.model import TrainedTokenizer
from fairtune.study.auto_length import block_lengths, resolve_lengths
from fairtune.study.schema import Study
from fairtune.tasks import Task, TaskFacts, load_task
from fairtune.tasks.card.contamination import check_contamination
from fairtune.tasks.corpora import Corpus, is_text, load_corpus
from fairtune.tasks.text_task import TextTask


@dataclass(frozen=True)
class Grounds:
    """What was found.

    Args:
        study: with numbers for its lengths.
        models: what each arm starts from.
        tokenizer: None where it is simply the checkpoint's own.
        examples: training examples of each arm: rows of a task, or blocks of text.
        notes: what a reader of its results must be told.
        lengths: what `max_length` became where it was not a number, and why.
    """

    study: Study
    task: TaskFacts
    models: dict[str, ModelSource]
    tokenizer: TokenizerSource | None
    examples: dict[str, int]
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()

    @property
    def model(self) -> ModelSource:
        """The model of the arm that the others are compared to; nearly always that of all."""
        return self.models[self.study.compare.to]


def find_grounds(study: Study) -> Grounds:
    """Read the data and find the model.

    Raises:
        FairtuneError: one of them is not there or not fit, or they do not fit each other.
    """
    grounds = _text(study) if is_text(study.task) else _classification(study)
    for arm in grounds.study.arms:
        longest, model = grounds.study.settings(arm).longest, grounds.models[arm]
        if model.positions is not None and longest > model.positions:
            raise FairtuneError(
                f"arm '{arm}': max_length is {longest}, but model '{model.name}' has {model.positions} positions; lower max_length."
            )
    _require_enough(grounds)
    if grounds.model.preset is not None:
        return replace(grounds, notes=(*grounds.notes, *preset_remarks(grounds.model.preset)))
    for arm, model in grounds.models.items():
        if use := _use(grounds.study, arm):
            require_capable(model, use)
    return grounds


def _require_enough(grounds: Grounds) -> None:
    """Refuse an arm with a method that cannot work with so few examples, or such classes."""
    for arm in grounds.study.arms:
        asked = grounds.study.settings(arm).examples
        examples = grounds.examples[arm] if asked is None else min(asked, grounds.examples[arm])
        for use in grounds.study.methods(arm):
            if problem := use.config.data_problem(examples, grounds.task.labels):
                raise FairtuneError(f"arm '{arm}', method '{use.name}': {problem}")


def _use(study: Study, arm: str) -> Capability | None:
    """What an arm asks of its checkpoint that not every one can do."""
    return "language_model" if is_text(study.task) else study.settings(arm).attention


def _classification(study: Study) -> Grounds:
    data = load_task(**study.data())
    notes = check_contamination(data, study.train_on, study.allow_contamination)
    text = TrainingText(data.splits["train"].identity, lambda: _texts(data))
    models: dict[str, ModelSource] = {}
    tokenizer, told = None, []
    for arms in _sharing_a_model(study):
        model = named_model(study, arms[0])
        if study.tokenizer is not None or model.preset is not None:
            model, tokenizer = tokenized(study, model, text)
        study, model, lengths = resolve_lengths(study, data, model, tokenizer, arms)
        models |= dict.fromkeys(arms, model)
        told += [line if len(arms) == len(study.arms) else f"{model.name}: {line}" for line in lengths]
    facts, in_order = data.facts(), {arm: models[arm] for arm in study.arms}
    examples = dict.fromkeys(study.arms, facts.rows["train"])
    return Grounds(study, facts, in_order, tokenizer, examples, notes, tuple(told))


def _sharing_a_model(study: Study) -> list[list[str]]:
    """The arms, those together that start from the same model."""
    found: dict[str, list[str]] = {}
    for arm in study.arms:
        found.setdefault(str(study.model_of(arm)), []).append(arm)
    return list(found.values())


def _texts(data: Task) -> Iterator[list[str]]:
    for texts in data.splits["train"].texts:
        yield list(texts)


def _text(study: Study) -> Grounds:
    corpus = load_corpus(study.task)
    model, tokenizer = tokenized(study, named_model(study), text_of(corpus))
    study, lengths = block_lengths(study, model)
    task = TextTask(corpus, tokenizer_folder(Path(tokenizer.folder), padding=False))
    examples = {arm: task.examples(study.settings(arm)) for arm in study.arms}
    facts, models = task.facts(study.settings(study.compare.to)), dict.fromkeys(study.arms, model)
    return Grounds(study, facts, models, tokenizer, examples, (), lengths)


def text_of(corpus: Corpus) -> TrainingText:
    return TrainingText(corpus.identity("train"), lambda: corpus.documents("train"))


def named_model(study: Study, arm: str | None = None) -> ModelSource:
    """The model as the study names it, or as an arm of it does."""
    named = study.model if arm is None else study.model_of(arm)
    return find_model(named if isinstance(named, str) else named.model_dump(exclude_none=True))


def tokenized(study: Study, model: ModelSource, text: TrainingText) -> tuple[ModelSource, TokenizerSource]:
    """The model and the tokenizer, which fit each other."""
    given = study.tokenizer
    tokenizer = find_tokenizer(given.train if isinstance(given, TrainedTokenizer) else given, model, text)
    return fitted(model.fetched(), tokenizer), tokenizer
