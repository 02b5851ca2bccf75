"""Making a data card: counted from hashes and Arrow's columns, so that a million rows take seconds and little memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from fairtune.core.cache import cached_json, key_of
from fairtune.core.stages import stage
from fairtune.ledger.data_card import (
    Contradiction,
    DataCard,
    Languages,
    Overlap,
    SplitCard,
    TextLengths,
)
from fairtune.settings.file_task import FileTask
from fairtune.tasks.card.contamination import known_of
from fairtune.tasks.card.languages import languages_of
from fairtune.tasks.card.warnings import warnings_of
from fairtune.tasks.catalogue import load_task
from fairtune.tasks.duplicates import contradictory, find_duplicates, repeated, shared, without_duplicates
from fairtune.tasks.task import BATCH, SPLITS, TEXT_COLUMNS, Split, Task
from fairtune.tasks.text_hashes import Hashes, exact_and_normal

VERSION = 2
"""Raised whenever the same splits would give another card."""
SAMPLE = 1000
"""Texts of a split whose language is looked at."""
EXAMPLES, SHOWN = 3, 80
"""Contradictions that are shown, and the characters of each."""
Counts = npt.NDArray[np.int64]


def card_of(spec: str | FileTask | Mapping[str, Any], train_on: str | None = None, dedupe: bool = False) -> DataCard:
    """The card of a task, named as `load_task` takes it."""
    task = load_task(spec, train_on)
    if not dedupe:
        return make_card(task, train_on)
    card = make_card(without_duplicates(task), train_on)
    return replace(card, deduplicated=True, removal=find_duplicates(task)[1])


def make_card(task: Task, train_on: str | None = None) -> DataCard:
    """The card of a task that is loaded; what was counted before is found in the cache."""
    parts = [VERSION, task.facts().hashes, list(task.labels)]
    counted = DataCard.from_json(cached_json("cards", key_of(parts), lambda: _count(task).as_json()))
    card = replace(
        counted, task=task.name, source="; ".join([task.source, *task.notes]), fingerprint=task.fingerprint, trained_on=train_on,
        known=known_of(task.name, train_on),
    )  # fmt: skip
    return replace(card, warnings=warnings_of(card))


@stage("looking over the data for its card")
def _count(task: Task) -> DataCard:
    firsts = {name: _first_texts(task.splits[name]) for name in SPLITS} if _pairs(task) else None
    return DataCard(
        task=task.name, source=task.source, fingerprint=task.fingerprint, pairs=firsts is not None, trained_on=None,
        deduplicated=False, splits={name: _split(task.splits[name], task.labels) for name in SPLITS},
        overlaps=tuple(
            _overlap(task, first, second, firsts)
            for first, second in (("train", "test"), ("train", "validation"), ("validation", "test"))
        ),
        removal=find_duplicates(task)[1], known=(), warnings=(),
    )  # fmt: skip


def _pairs(task: Task) -> bool:
    return TEXT_COLUMNS[1] in task.splits["test"].table.column_names


def _split(split: Split, labels: tuple[str, ...]) -> SplitCard:
    counts = np.bincount(split.labels, minlength=len(labels))
    opposed = contradictory(split.normal, split.labels)
    words, characters, empty = _sizes(split)
    return SplitCard(
        hash=split.identity,
        rows=len(split),
        classes={name: int(count) for name, count in zip(labels, counts, strict=True)},
        repeated_exactly=int(repeated(split.exact).sum()),
        repeated=int(repeated(split.normal).sum()),
        contradictory=int(opposed.sum()),
        contradictory_texts=len(np.unique(split.normal[opposed])),
        contradictions=tuple(islice(_contradictions(split, opposed, labels), EXAMPLES)),
        empty=empty,
        words=_lengths(words),
        characters=_lengths(characters),
        languages=_languages(split),
    )


def _contradictions(split: Split, opposed: npt.NDArray[np.bool_], labels: tuple[str, ...]) -> Iterator[Contradiction]:
    """Those that occur most, then those that come first."""
    rows = np.flatnonzero(opposed)
    _, first, group, sizes = np.unique(split.normal[rows], return_index=True, return_inverse=True, return_counts=True)
    for place in np.lexsort((first, -sizes)):
        counts = np.bincount(split.labels[rows[group == place]], minlength=len(labels))
        by_label = {name: int(count) for name, count in zip(labels, counts, strict=True) if count}
        texts = split.texts[int(rows[first[place]])]
        yield Contradiction(" | ".join(_short(text, SHOWN // len(texts)) for text in texts), by_label)


def _short(text: str, most: int) -> str:
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _sizes(split: Split) -> tuple[Counts, Counts, int]:
    """Words and characters of each example, and how many have an empty text."""
    import pyarrow.compute as pc

    words, characters, empty = [], [], 0
    texts = split.table.select([name for name in TEXT_COLUMNS if name in split.table.column_names])
    for batch in texts.to_batches(max_chunksize=BATCH):
        counts = np.array([[len(text.split()) for text in column.to_pylist()] for column in batch.columns])
        words.append(counts.sum(axis=0))
        characters.append(sum(pc.utf8_length(column).to_numpy() for column in batch.columns))
        empty += int((counts.min(axis=0) == 0).sum())
    return np.concatenate(words), np.concatenate(characters), empty


def _lengths(sizes: Counts) -> TextLengths:
    median, p95 = np.percentile(sizes, [50, 95], method="inverted_cdf")
    return TextLengths(int(median), int(p95), int(sizes.max()))


def _languages(split: Split) -> Languages:
    """Of a sample that depends on nothing but the texts: the different ones that have the lowest hashes."""
    rows = np.unique(split.exact, return_index=True)[1][:SAMPLE]
    return languages_of(split.texts[int(row)] for row in rows)


def _first_texts(split: Split) -> Hashes:
    """The first text of each pair, as a hash of its normal form."""
    found = []
    for batch in split.table.select(TEXT_COLUMNS[:1]).to_batches(max_chunksize=BATCH):
        found.append(exact_and_normal((text,) for text in batch.column(0).to_pylist())[1])
    return np.concatenate(found)


def _overlap(task: Task, first: str, second: str, firsts: Mapping[str, Hashes] | None) -> Overlap:
    ours, theirs = task.splits[second], task.splits[first]
    return Overlap(
        first=first,
        second=second,
        rows=len(ours),
        exactly=int(shared(ours.exact, theirs.exact).sum()),
        shared=int(shared(ours.normal, theirs.normal).sum()),
        first_texts=None if firsts is None else int(shared(firsts[second], firsts[first]).sum()),
    )
