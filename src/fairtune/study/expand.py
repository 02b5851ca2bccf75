"""From a study as it was written to a whole one: its data and models found and checked, with the arms and lengths that it asks for.

`max_length: auto` becomes a number here, so that runs, hashes and reports only know numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairtune.core.errors import FairtuneError
from fairtune.models.capability import require_capable
from fairtune.models.presets import preset_remarks
from fairtune.models.sources import ModelSource, find_model
from fairtune.models.tokenizers import TokenizerSource, TrainingText, find_tokenizer, fitted, tokenizer_folder
from fairtune.settings.few_labels import examples_used, few_labels
from fairtune.settings.learners import count_pairs
from fairtune.settings.model import TrainedTokenizer
from fairtune.settings.values import AUTO, LONGEST_NAME
from fairtune.study.controls import (
    ArmSettings,
    arm_line,
    arm_settings,
    find_controls,
    find_primaries,
    free_name,
    matched_controls,
    missing_controls,
    trained_study,
    with_arms,
)
from fairtune.study.input_checks import require_samples
from fairtune.study.schema import Study
from fairtune.study.trials import Tuned, tuned_study
from fairtune.tasks import Task, TaskFacts, load_task
from fairtune.tasks.card.contamination import (
    NONE_SHARED,
    SharedTexts,
    check_contamination,
    shared_documents,
    shared_texts,
)
from fairtune.tasks.card.lengths import COVERAGE, Counts, auto_length, heldout_counts, train_counts
from fairtune.tasks.corpora import Corpus, is_text, load_corpus
from fairtune.tasks.tokens.blocks import TextTask

FEWEST_FOR_PAIRS = 2
MOST_TOKENS = 1024
"""A block is no longer than this unless the study says so, whatever the model could take."""


@dataclass(frozen=True, kw_only=True)
class FullStudy:
    """A study with everything that its runs follow from.

    Args:
        study: with numbers for its lengths, and with the arms that were added.
        tokenizer: None where it is the checkpoint's own and the task is to classify.
        examples: training examples of each arm: rows of a task, or blocks of text.
        notes: what a reader of its results must know of the data.
        lengths: what `max_length` became where it was not a number, and why.
        overlap: test texts that are validation texts too.
        data: the examples themselves; None of text for language models.
        missing: of arms without a control, the line of a study file that would add one.
        added: the arms that were added, each with its line of a study file.
        copy: the arm that is the reference again, with other random numbers.
        matched: of each arm whose choice is not its partner's, the partner with the arm's settings.
        partners: of each matched control that was added, the arm that it repeats.
        tuned: how settings were chosen; None where they are as given, or still to be chosen.
    """

    study: Study
    task: TaskFacts
    models: dict[str, ModelSource]
    tokenizer: TokenizerSource | None
    examples: dict[str, int]
    notes: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    overlap: SharedTexts = NONE_SHARED
    data: Task | None = field(default=None, repr=False)
    missing: dict[str, str] = field(default_factory=dict)
    added: dict[str, str] = field(default_factory=dict)
    copy: str | None = None
    matched: dict[str, str] = field(default_factory=dict)
    partners: dict[str, str] = field(default_factory=dict)
    tuned: Tuned | None = None

    @property
    def reference(self) -> str:
        """The arm that the others are compared to."""
        return self.study.compare.to

    @property
    def model(self) -> ModelSource:
        """The model of the reference; nearly always that of all arms."""
        return self.models[self.reference]

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

    def controls_of(self, arms: Mapping[str, ArmSettings]) -> dict[str, str | None]:
        """Each arm's control: that of a copy is what it copies, and a matched control has none."""
        reference = self.study.compare.to
        copied = {self.copy: reference} if self.copy else {}
        return {**find_controls(arms, reference), **dict.fromkeys(self.partners), **copied}


def expand(study: Study, tuned: Tuned | None = None) -> FullStudy:
    """The study with the arms that it asks for, the settings that its arms chose, and numbers for its lengths."""
    reference, copy = study.compare.to, None
    lacking = missing_controls(study)
    missing = {arm: arm_line(*control) for arm, control in lacking.items()}
    added = {name: arm_line(name, arm) for name, arm in lacking.values()} if study.controls else {}
    study = trained_study(study)
    if tuned is not None:
        study = tuned_study(study, tuned.choices)
    if study.aa:
        copy = free_name(f"{reference[: LONGEST_NAME - 6]}-again", study.arms)
        study = with_arms(study, {copy: study.arms[reference]})
    full = replace(find_inputs(study), missing=missing, added=added, copy=copy, tuned=tuned)
    if tuned is None:
        return full
    study = full.study
    compared = find_primaries(full.controls_of(arm_settings(study, full.models)), reference)
    chose = {arm for arm in study.arms if arm != copy and study.learner(arm) is None}
    own = {arm: other for arm, other in compared.items() if other is not None and {arm, other} <= chose}
    matched, new = matched_controls(study, own)
    partners = {name: own[arm] for arm, name in reversed(matched.items()) if name in new}
    study = with_arms(study, new)
    return replace(
        full,
        study=study,
        models={arm: full.models[partners.get(arm, arm)] for arm in study.arms},
        examples={arm: full.examples[partners.get(arm, arm)] for arm in study.arms},
        added={**added, **{name: arm_line(name, arm) for name, arm in new.items()}},
        matched=matched,
        partners=partners,
    )


def find_inputs(study: Study) -> FullStudy:
    """Read the data and find the models, which must fit each other."""
    found = _text(study) if is_text(study.task) else _classification(study)
    for arm in study.arms:
        _require_fit(found, arm)
    preset = found.model.preset
    return found if preset is None else replace(found, notes=(*found.notes, *preset_remarks(preset)))


def _require_fit(found: FullStudy, arm: str) -> None:
    """Refuse an arm that its model or the examples do not suit."""
    study, model = found.study, found.models[arm]
    train = study.settings(arm)
    if model.positions is not None and train.longest > model.positions and study.uses_model(arm):
        limit = f"model '{model.name}' has {model.positions} positions"
        raise FairtuneError(f"arm '{arm}': max_length is {train.longest}, but {limit}; lower it.")
    few = few_labels(train.examples)
    if study.pairs(arm) is not None and few is not None and few.per_class < FEWEST_FOR_PAIRS:
        why = "setfit learns from pairs of one class, and with per_class 1 there are none"
        raise FairtuneError(f"arm '{arm}': {why}; use 2 or more per class, or remove this arm.")
    for use in study.methods(arm):
        if problem := use.config.data_problem(found.used(arm), found.task.labels):
            raise FairtuneError(f"arm '{arm}', method '{use.name}': {problem}")
    wanted = "language_model" if is_text(study.task) else train.attention
    if wanted and model.preset is None:
        require_capable(model, wanted)


def _classification(study: Study) -> FullStudy:
    data = load_task(**study.data())
    metric, train = study.metric or data.metric, data.splits["train"]
    require_samples(study, data, metric)
    notes = (*data.notes, *check_contamination(data, study.train_on, study.allow_contamination))
    named = {arm: study.model_of(arm) for arm in study.arms}
    models: dict[str, ModelSource] = {}
    tokenizer, reasons = None, []
    for name in dict.fromkeys(map(str, named.values())):
        arms = [arm for arm, one in named.items() if str(one) == name]
        model = find_model(named[arms[0]])
        if study.tokenizer is not None or model.preset is not None:
            model, tokenizer = tokenized(study, model, TrainingText(train.identity, lambda: map(list, train.texts)))
        if free := [arm for arm in arms if study.settings(arm).max_length == AUTO]:
            model = model.fetched()
            words = tokenizer_folder(Path(tokenizer.folder if tokenizer else str(model.folder)))
            counts = train_counts(data, words)
            length = auto_length(counts, model.positions)
            study = _with_length(study, free, length)
            reason = _length_reason(length, counts, heldout_counts(data, words))
            reasons.append(reason if len(arms) == len(named) else f"{model.name}: {reason}")
        models |= dict.fromkeys(arms, model)
    facts = replace(data.facts(), metric=metric)
    return FullStudy(
        study=study,
        task=facts,
        models={arm: models[arm] for arm in study.arms},
        tokenizer=tokenizer,
        examples=dict.fromkeys(study.arms, facts.rows["train"]),
        notes=notes,
        lengths=tuple(reasons),
        overlap=shared_texts(data),
        data=data,
    )


def _text(study: Study) -> FullStudy:
    corpus = load_corpus(study.task)
    model, tokenizer = tokenized(study, find_model(study.model), text_of(corpus))
    settings = {arm: study.settings(arm) for arm in study.arms}
    free = [arm for arm, own in settings.items() if own.max_length == AUTO or "max_length" not in own.model_fields_set]
    length = min(model.positions or MOST_TOKENS, MOST_TOKENS)
    whole = "the model's context" if length == model.positions else f"the model takes {model.positions or 'any number'}"
    study = _with_length(study, free, length)
    task = TextTask(corpus, tokenizer_folder(Path(tokenizer.folder), padding=False))
    facts = task.facts(study.settings(study.compare.to))
    return FullStudy(
        study=study,
        task=replace(facts, metric=study.metric or facts.metric),
        models=dict.fromkeys(study.arms, model),
        tokenizer=tokenizer,
        examples={arm: task.examples(study.settings(arm)) for arm in study.arms},
        lengths=(f"max_length: blocks of {length:,} tokens, {whole}",) if free else (),
        # what is published is divided as published, and is read as little as possible
        overlap=NONE_SHARED if isinstance(study.task, str) else shared_documents(corpus),
    )


def text_of(corpus: Corpus) -> TrainingText:
    return TrainingText(corpus.identity("train"), lambda: corpus.documents("train"))


def tokenized(study: Study, model: ModelSource, text: TrainingText) -> tuple[ModelSource, TokenizerSource]:
    """The model and the tokenizer, which fit each other."""
    given = study.tokenizer
    tokenizer = find_tokenizer(given.train if isinstance(given, TrainedTokenizer) else given, model, text)
    return fitted(model.fetched(), tokenizer), tokenizer


def _with_length(study: Study, arms: list[str], length: int) -> Study:
    return with_arms(study, {arm: study.arms[arm].model_copy(update={"max_length": length}) for arm in arms})


def _length_reason(length: int, train: Counts, heldout: Counts) -> str:
    """Why this length. Held-out examples may be longer, as SST-2's are: then many of those that are reported are cut."""
    examples = f"{train.n:,} {'sampled ' if train.sampled else ''}training examples"
    covered, least, others = (f"{100 * s:.3g} %" for s in (1 - train.cut(length), COVERAGE, 1 - heldout.cut(length)))
    rest = f"and {others} of {heldout.n:,} of validation and test"
    if length >= (wanted := train.covering(COVERAGE)):
        return f"max_length auto: {length} tokens cover {least} of {examples}, {rest}"
    all_tokens = f"max_length auto: {length} tokens, all that the model takes, cover {covered} of {examples}"
    return f"{all_tokens}, {rest}; {least} would need {wanted}"
