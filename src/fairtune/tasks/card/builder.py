"""Making a data card: counted from hashes and Arrow's columns, so that a million rows take seconds and little memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached_json, key_of
from fairtune.core.printable import clip
from fairtune.core.stages import stage
from fairtune.ledger.data_card import Contradiction, DataCard, Overlap, SplitCard, TextLengths
from fairtune.settings.file_task import FileTask
from fairtune.tasks.card.languages import languages_of
from fairtune.tasks.card.warnings import warnings_of
from fairtune.tasks.catalogue import load_task
from fairtune.tasks.duplicates import contradictory, find_duplicates, repeated, shared, without_duplicates
from fairtune.tasks.task import SPLITS, TEXT_COLUMNS, Split, Task
from fairtune.tasks.text_hashes import exact_and_normal

VERSION = 3
"""Raised whenever the same splits would give another card."""
SAMPLE = 1000
"""Texts of a split whose language is looked at."""
EXAMPLES, SHOWN = 3, 80
"""Contradictions that are shown, and the characters of each."""


def card_of(spec: str | FileTask | Mapping[str, Any], train_on: str | None = None, dedupe: bool = False) -> DataCard:
    """The card of a task, named as `load_task` takes it; what was counted before is found in the cache."""
    whole = load_task(spec, train_on)
    task = without_duplicates(whole) if dedupe else whole
    parts = [VERSION, task.facts().hashes, list(task.labels)]
    counted = DataCard.from_json(cached_json("cards", key_of(parts), lambda: _count(task).as_json()))
    card = replace(
        counted, task=task.name, source="; ".join([task.source, *task.notes]), fingerprint=task.fingerprint, trained_on=train_on,
        deduplicated=dedupe, removal=find_duplicates(whole)[1] if dedupe else counted.removal,
    )  # fmt: skip
    return replace(card, warnings=warnings_of(card))


@stage("looking over the data for its card")
def _count(task: Task) -> DataCard:
    pairs = TEXT_COLUMNS[1] in task.splits["test"].table.column_names
    firsts = {name: exact_and_normal([task.splits[name].table.column(TEXT_COLUMNS[0])])[1] for name in SPLITS if pairs}

    def overlap(first: str, second: str) -> Overlap:
        ours, theirs = task.splits[second], task.splits[first]
        exactly, alike = shared(ours.exact, theirs.exact).sum(), shared(ours.normal, theirs.normal).sum()
        first_texts = int(shared(firsts[second], firsts[first]).sum()) if pairs else None
        return Overlap(first, second, len(ours), int(exactly), int(alike), first_texts)

    return DataCard(
        task=task.name, source=task.source, fingerprint=task.fingerprint, pairs=pairs, trained_on=None,
        deduplicated=False, splits={name: _split(task.splits[name], task.labels) for name in SPLITS},
        overlaps=(overlap("train", "test"), overlap("train", "validation"), overlap("validation", "test")),
        removal=find_duplicates(task)[1], warnings=(),
    )  # fmt: skip


def _split(split: Split, labels: tuple[str, ...]) -> SplitCard:
    opposed = contradictory(split.normal, split.labels)
    words, characters, fewest = np.fromiter(_sizes(split), np.dtype((np.int64, 3))).T
    sample = np.unique(split.exact, return_index=True)[1][:SAMPLE]  # with the lowest hashes: always the same one
    return SplitCard(
        hash=split.identity,
        rows=len(split),
        classes=_by_label(split.labels, labels),
        repeated_exactly=int(repeated(split.exact).sum()),
        repeated=int(repeated(split.normal).sum()),
        contradictory=int(opposed.sum()),
        contradictory_texts=len(np.unique(split.normal[opposed])),
        contradictions=tuple(islice(_contradictions(split, np.flatnonzero(opposed), labels), EXAMPLES)),
        empty=int((fewest == 0).sum()),
        words=_lengths(words),
        characters=_lengths(characters),
        languages=languages_of(split.texts[int(row)] for row in sample),
    )


def _by_label(numbers: npt.NDArray[np.int64], labels: tuple[str, ...]) -> dict[str, int]:
    return dict(zip(labels, np.bincount(numbers, minlength=len(labels)).tolist(), strict=True))


def _contradictions(split: Split, rows: npt.NDArray[np.int64], labels: tuple[str, ...]) -> Iterator[Contradiction]:
    """Those that occur most, then those that come first."""
    _, first, group, sizes = np.unique(split.normal[rows], return_index=True, return_inverse=True, return_counts=True)
    for place in np.lexsort((first, -sizes)):
        counts = _by_label(split.labels[rows[group == place]], labels)
        texts = split.texts[int(rows[first[place]])]
        most = SHOWN // len(texts)
        lines = [" ".join(text[: 4 * most].split()) for text in texts]
        shown = " | ".join(clip(line, most) for line in lines)
        yield Contradiction(shown, {label: count for label, count in counts.items() if count})


def _sizes(split: Split) -> Iterator[tuple[int, int, int]]:
    """Of each example: its words, its characters, and the words of its shorter text."""
    for texts in split.texts:
        words = [len(text.split()) for text in texts]
        yield sum(words), sum(map(len, texts)), min(words)


def _lengths(sizes: npt.NDArray[np.int64]) -> TextLengths:
    median, p95 = np.percentile(sizes, [50, 95], method="inverted_cdf")
    return TextLengths(int(median), int(p95), int(sizes.max()))
