"""`max_length: auto` becomes a number when a study is planned, so that runs, hashes and reports only know numbers."""

from __future__ import annotations

from pathlib import Path

from fairtune.models.sources import ModelSource
from fairtune.study.schema import Study
from fairtune.study.values import AUTO
from fairtune.tasks.lengths import COVERAGE, auto_length
from fairtune.tasks.task import Task
from fairtune.tasks.token_counts import Counts, token_counts


def resolve_lengths(study: Study, task: Task, model: ModelSource) -> tuple[Study, ModelSource, tuple[str, ...]]:
    """The study with numbers for lengths, its model with the files that counting needed, and what to tell of it."""
    chosen = [arm for arm in study.arms if study.settings(arm).max_length == AUTO]
    if not chosen:
        return study, model, ()
    model = model.fetched()
    counts = token_counts([task.splits["train"]], Path(str(model.folder)))
    length = auto_length(counts, model.positions)
    arms = {arm: study.arms[arm].model_copy(update={"max_length": length}) for arm in chosen}
    return study.model_copy(update={"arms": {**study.arms, **arms}}), model, (_told(counts, length),)


def _told(counts: Counts, length: int) -> str:
    examples = f"{counts.n:,} {'sampled ' if counts.sampled else ''}training examples"
    wanted = counts.covering(COVERAGE)
    if length < wanted:
        return (
            f"max_length auto: {length} tokens, all that the model takes, cover {1 - counts.cut(length):.1%} of {examples}; "
            f"{COVERAGE:.0%} would need {wanted}"
        ).replace("%", " %")
    return f"max_length auto: {length} tokens cover {COVERAGE:.0%} of {examples}".replace("%", " %")
