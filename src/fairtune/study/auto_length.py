"""`max_length: auto` becomes a number when a study is planned, so that runs, hashes and reports only know numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairtune.models.sources import ModelSource
from fairtune.models.tokenizers import TokenizerSource, tokenizer_folder
from fairtune.settings.sections import Train
from fairtune.settings.values import AUTO
from fairtune.study.schema import Study
from fairtune.tasks.card.lengths import (
    COVERAGE,
    auto_length,
    heldout_counts,
    train_counts,
)
from fairtune.tasks.task import Task
from fairtune.tasks.tokens.counts import Counts

MOST_TOKENS = 1024
"""A block is no longer than this unless the study says so, whatever the model could take."""


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
    return _with_length(study, chosen, length), model, (_told(length, train, heldout),)


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


def _told(length: int, train: Counts, heldout: Counts) -> str:
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
