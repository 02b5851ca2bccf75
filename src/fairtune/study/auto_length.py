"""`max_length: auto` becomes a number when a study is planned, so that runs, hashes and reports only know numbers."""

from __future__ import annotations

from pathlib import Path

from fairtune.models.sources import ModelSource
from fairtune.study.schema import Study
from fairtune.study.values import AUTO
from fairtune.tasks.lengths import COVERAGE, auto_length, heldout_counts, train_counts
from fairtune.tasks.task import Task
from fairtune.tasks.token_counts import Counts


def resolve_lengths(study: Study, task: Task, model: ModelSource) -> tuple[Study, ModelSource, tuple[str, ...]]:
    """The study with numbers for lengths, its model with the files that counting needed, and what to tell of it."""
    chosen = [arm for arm in study.arms if study.settings(arm).max_length == AUTO]
    if not chosen:
        return study, model, ()
    model = model.fetched()
    folder = Path(str(model.folder))
    train, heldout = train_counts(task, folder), heldout_counts(task, folder)
    length = auto_length(train, model.positions)
    arms = {arm: study.arms[arm].model_copy(update={"max_length": length}) for arm in chosen}
    return study.model_copy(update={"arms": {**study.arms, **arms}}), model, (_told(length, train, heldout),)


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
