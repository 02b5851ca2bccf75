"""What a plan starts from: the data and the models that a study names, found and checked before run 1.

`max_length: auto` becomes a number here, so that runs, hashes and reports only know numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fairtune.core.errors import FairtuneError
from fairtune.models.capability import Capability, require_capable
from fairtune.models.presets import preset_remarks
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TokenizerSource, TrainingText, find_tokenizer, fitted, tokenizer_folder
from fairtune.settings.few_labels import examples_used, few_labels
from fairtune.settings.learners import count_pairs
from fairtune.settings.model import TrainedTokenizer
from fairtune.settings.sections import Train
from fairtune.settings.values import AUTO
from fairtune.study.metric_checks import metric_of, require_metrics
from fairtune.study.schema import Study
from fairtune.tasks import Task, TaskFacts, load_task
from fairtune.tasks.card.contamination import check_contamination
from fairtune.tasks.card.lengths import (
    COVERAGE,
    auto_length,
    heldout_counts,
    train_counts,
)
from fairtune.tasks.class_samples import require_per_class
from fairtune.tasks.corpora import Corpus, is_text, load_corpus
from fairtune.tasks.overlap import NONE_SHARED, SharedTexts, find_shared_documents, find_shared_texts
from fairtune.tasks.text_task import TextTask
from fairtune.tasks.tokens.counts import Counts

FEWEST_FOR_PAIRS = 2
MOST_TOKENS = 1024
"""A block is no longer than this unless the study says so, whatever the model could take."""


@dataclass(frozen=True)
class PlanInputs:
    """What was found.

    Args:
        study: with numbers for its lengths.
        models: what each arm starts from.
        tokenizer: None where it is simply the checkpoint's own.
        examples: training examples of each arm: rows of a task, or blocks of text.
        notes: what a reader of its results must be told.
        lengths: what `max_length` became where it was not a number, and why.
        overlap: test texts that are validation texts too.
        data: the examples themselves; None of text for language models.
    """

    study: Study
    task: TaskFacts
    models: dict[str, ModelSource]
    tokenizer: TokenizerSource | None
    examples: dict[str, int]
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    overlap: SharedTexts = NONE_SHARED
    data: Task | None = None

    def used(self, arm: str) -> int:
        """Training examples that an arm uses."""
        return examples_used(self.study.settings(arm).examples, self.examples[arm], len(self.task.labels))

    def steps(self, arm: str) -> int:
        """Optimizer steps of an arm's runs; none where it is fitted at once."""
        learner = self.study.learner(arm)
        if learner is not None and not learner.trained:
            return 0
        train, used, each = self.study.settings(arm), self.used(arm), self.study.pairs(arm)
        return train.total_steps(used) if each is None else train.for_pairs().total_steps(count_pairs(used, each))

    @property
    def model(self) -> ModelSource:
        """The model of the arm that the others are compared to; nearly always that of all."""
        return self.models[self.study.compare.to]


def find_inputs(study: Study) -> PlanInputs:
    """Read the data and find the model.

    Raises:
        FairtuneError: one of them is not there or not fit, or they do not fit each other.
    """
    inputs = _text(study) if is_text(study.task) else _classification(study)
    for arm in inputs.study.arms:
        longest, model = inputs.study.settings(arm).longest, inputs.models[arm]
        if model.positions is not None and longest > model.positions and inputs.study.uses_model(arm):
            raise FairtuneError(
                f"arm '{arm}': max_length is {longest}, but model '{model.name}' has {model.positions} positions; lower max_length."
            )
    _require_enough(inputs)
    if inputs.model.preset is not None:
        return replace(inputs, notes=(*inputs.notes, *preset_remarks(inputs.model.preset)))
    for arm, model in inputs.models.items():
        if use := _use(inputs.study, arm):
            require_capable(model, use)
    return inputs


def _require_enough(inputs: PlanInputs) -> None:
    """Refuse an arm with a method that cannot work with so few examples, or such classes."""
    for arm in inputs.study.arms:
        few = few_labels(inputs.study.settings(arm).examples)
        if inputs.study.pairs(arm) is not None and few is not None and few.per_class < FEWEST_FOR_PAIRS:
            raise FairtuneError(
                f"arm '{arm}': setfit learns from pairs of one class, and with per_class 1 there are none; use 2 or more per "
                "class, or remove this arm."
            )
        for use in inputs.study.methods(arm):
            if problem := use.config.data_problem(inputs.used(arm), inputs.task.labels):
                raise FairtuneError(f"arm '{arm}', method '{use.name}': {problem}")


def _use(study: Study, arm: str) -> Capability | None:
    """What an arm asks of its checkpoint that not every one can do."""
    return "language_model" if is_text(study.task) else study.settings(arm).attention


def _classification(study: Study) -> PlanInputs:
    data = load_task(**study.data())
    _require_per_class(study, data)
    require_metrics(study, data)
    notes = (*data.notes, *check_contamination(data, study.train_on, study.allow_contamination))
    text = TrainingText(data.splits["train"].identity, lambda: _texts(data))
    models: dict[str, ModelSource] = {}
    tokenizer, reasons = None, []
    for arms in _sharing_a_model(study):
        model = named_model(study, arms[0])
        if study.tokenizer is not None or model.preset is not None:
            model, tokenizer = tokenized(study, model, text)
        study, model, lengths = resolve_lengths(study, data, model, tokenizer, arms)
        models |= dict.fromkeys(arms, model)
        reasons += [line if len(arms) == len(study.arms) else f"{model.name}: {line}" for line in lengths]
    facts = replace(data.facts(), metric=metric_of(study, data.metric))
    in_order = {arm: models[arm] for arm in study.arms}
    examples = dict.fromkeys(study.arms, facts.rows["train"])
    return PlanInputs(study, facts, in_order, tokenizer, examples, notes, tuple(reasons), find_shared_texts(data), data)


def _require_per_class(study: Study, data: Task) -> None:
    """Refuse a sample for which some class has too few examples."""
    for arm, own in study.arms.items():
        if few := few_labels(study.settings(arm).examples):
            where = "train" if getattr(own, "examples", None) is None else f"arms.{arm}"
            require_per_class(data.splits["train"], data.labels, few.per_class, f"{where}.examples")


def _sharing_a_model(study: Study) -> list[list[str]]:
    """The arms, those together that start from the same model."""
    found: dict[str, list[str]] = {}
    for arm in study.arms:
        found.setdefault(str(study.model_of(arm)), []).append(arm)
    return list(found.values())


def _texts(data: Task) -> Iterator[list[str]]:
    for texts in data.splits["train"].texts:
        yield list(texts)


def _text(study: Study) -> PlanInputs:
    corpus = load_corpus(study.task)
    model, tokenizer = tokenized(study, named_model(study), text_of(corpus))
    study, lengths = block_lengths(study, model)
    task = TextTask(corpus, tokenizer_folder(Path(tokenizer.folder), padding=False))
    examples = {arm: task.examples(study.settings(arm)) for arm in study.arms}
    facts, models = task.facts(study.settings(study.compare.to)), dict.fromkeys(study.arms, model)
    facts = replace(facts, metric=metric_of(study, facts.metric))
    # what is published is divided as published, and is read as little as possible
    overlap = NONE_SHARED if isinstance(study.task, str) else find_shared_documents(corpus)
    return PlanInputs(study, facts, models, tokenizer, examples, (), lengths, overlap)


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


def resolve_lengths(
    study: Study, task: Task, model: ModelSource, tokenizer: TokenizerSource | None = None, arms: Iterable[str] = ()
) -> tuple[Study, ModelSource, tuple[str, ...]]:
    """The study with numbers for lengths, its model with the files that counting needed, and what to tell of it.

    Args:
        tokenizer: where it is not the model's own.
        arms: those that start from this model; all, if none are named.
    """
    chosen = [arm for arm in arms or study.arms if study.settings(arm).max_length == AUTO]
    if not chosen:
        return study, model, ()
    model = model.fetched()
    words = tokenizer_folder(Path(tokenizer.folder if tokenizer else str(model.folder)))
    train, heldout = train_counts(task, words), heldout_counts(task, words)
    length = auto_length(train, model.positions)
    return _with_length(study, chosen, length), model, (_length_reason(length, train, heldout),)


def block_lengths(study: Study, model: ModelSource) -> tuple[Study, tuple[str, ...]]:
    """The study of a language model with numbers for the lengths of blocks: the model's context where none is given."""
    chosen = [arm for arm in study.arms if _is_open(study.settings(arm))]
    if not chosen:
        return study, ()
    length = min(model.positions or MOST_TOKENS, MOST_TOKENS)
    whole = "the model's context" if length == model.positions else f"the model takes {model.positions or 'any number'}"
    return _with_length(study, chosen, length), (f"max_length: blocks of {length:,} tokens, {whole}",)


def _is_open(train: Train) -> bool:
    return train.max_length == AUTO or "max_length" not in train.model_fields_set


def _with_length(study: Study, arms: list[str], length: int) -> Study:
    changed = {arm: study.arms[arm].model_copy(update={"max_length": length}) for arm in arms}
    return study.model_copy(update={"arms": {**study.arms, **changed}})


def _length_reason(length: int, train: Counts, heldout: Counts) -> str:
    """Why this length. Held-out examples may be longer, as SST-2's are: then many of those that are reported are cut."""
    examples = f"{train.n:,} {'sampled ' if train.sampled else ''}training examples"
    others = f"and {_percent(1 - heldout.cut(length))} of {heldout.n:,} of validation and test"
    wanted = train.covering(COVERAGE)
    if length < wanted:
        covered = _percent(1 - train.cut(length))
        return (
            f"max_length auto: {length} tokens, all that the model takes, cover {covered} of {examples}, {others}; "
            f"{_percent(COVERAGE)} would need {wanted}"
        )
    return f"max_length auto: {length} tokens cover {_percent(COVERAGE)} of {examples}, {others}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
