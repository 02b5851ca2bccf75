"""Examples behind mistakes: the texts that a study kept, and shares of right answers by kind and by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fairtune.analysis.mistakes import (
    Answers,
    Mask,
    Share,
    length_bands,
    share_of,
)
from fairtune.core.errors import LedgerError
from fairtune.core.printable import clip
from fairtune.ledger.predictions import EXAMPLES_FILE, AboutExamples, Examples, about_examples, read_examples

LONGEST = 240
"""Characters of a text in a list."""


@dataclass(frozen=True)
class KeptTexts:
    """The examples of each split, and what is to be said of them.

    Args:
        problem: why there are none.
    """

    splits: dict[str, Examples]
    about: AboutExamples | None
    problem: str | None

    def of(self, split: str) -> Examples | None:
        return self.splits.get(split)

    def find(self, split: str, name: str) -> tuple[str, ...]:
        """The texts of an example, cut; empty if they were not kept."""
        place = self._places.get((split, name))
        return () if place is None else tuple(_cut(text) for text in self.splits[split].texts[place])

    def notes(self) -> Iterator[str]:
        if self.problem is not None:
            yield f"There are no texts to show, and no kinds and lengths: {self.problem}."
        for split, scored in (self.about.scored if self.about and not self.problem else {}).items():
            kept = len(self.splits[split].ids)
            if kept < scored:
                yield (
                    f"Of the {scored:,} {split} examples, the texts of {kept:,} were kept, a fixed stratified sample; kinds and "
                    "lengths are of these, and an example without a text has its id."
                )

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {(split, name): i for split, part in self.splits.items() for i, name in enumerate(part.ids)}


def read_texts(folder: Path) -> KeptTexts:
    """What the folder of a study keeps."""
    about = about_examples(folder / EXAMPLES_FILE)
    if about is None:
        return KeptTexts({}, None, f"the study has no {EXAMPLES_FILE} that can be read; run it again to write one")
    if about.problem is not None:
        return KeptTexts({}, about, f"they could not be kept ({about.problem})")
    try:
        return KeptTexts({split: read_examples(folder / EXAMPLES_FILE, split) for split in about.scored}, about, None)
    except LedgerError:
        return KeptTexts({}, about, f"the study's {EXAMPLES_FILE} is damaged; run it again to write it anew")


def _cut(text: str) -> str:
    return clip(" ".join(text.split()), LONGEST)


MOST = 30
"""Kinds that have a row of their own, the largest."""
OTHERS = "other kinds"


def by_kind(answers: Mapping[str, Answers], examples: Examples | None, split: str, confidence: float) -> Groups | None:
    """Groups of the examples that have a kind, the largest first; None where none has."""
    answers = _alike(answers)
    if not answers or examples is None:
        return None
    kinds = dict(zip(examples.ids, examples.kinds, strict=True))
    ids = next(iter(answers.values())).ids
    own = [kinds.get(name) for name in ids]
    counts = Counter(kind for kind in own if kind is not None)
    if not counts:
        return None
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))][:MOST]
    groups = {name: np.array([kind == name for kind in own]) for name in names}
    if len(counts) > MOST:
        groups[OTHERS] = np.array([kind is not None and kind not in groups for kind in own])
    return _groups(answers, groups, split, confidence)


def by_length(
    answers: Mapping[str, Answers], examples: Examples | None, split: str, confidence: float
) -> Groups | None:
    """Groups of about equal size by the number of tokens; None where lengths are not known."""
    answers = _alike(answers)
    if not answers or examples is None or not examples.ids:
        return None
    tokens = dict(zip(examples.ids, examples.tokens.tolist(), strict=True))
    own = np.array([tokens.get(name, -1) for name in next(iter(answers.values())).ids])
    if not (own >= 0).any():
        return None
    groups = {
        f"{first} to {last}" if first < last else str(first): (own >= first) & (own <= last)
        for first, last in length_bands(own[own >= 0])
    }
    return _groups(answers, groups, split, confidence)


def _alike(answers: Mapping[str, Answers]) -> dict[str, Answers]:
    """Those that were scored on the same examples as the first."""
    first = next(iter(answers.values()), None)
    return {arm: found for arm, found in answers.items() if first is not None and found.ids == first.ids}


def _groups(answers: Mapping[str, Answers], groups: Mapping[str, Mask], split: str, confidence: float) -> Groups:
    rows = [
        Group(name, int(members.sum()), {arm: share_of(found, members, confidence) for arm, found in answers.items()})
        for name, members in groups.items()
        if members.any()
    ]
    return Groups(split, tuple(rows))


@dataclass(frozen=True)
class Group:
    """Some examples of a split.

    Args:
        shares: of right answers, by arm.
    """

    name: str
    n: int
    shares: dict[str, Share]


@dataclass(frozen=True)
class Groups:
    """A split in groups: by kind, or by length."""

    split: str
    rows: tuple[Group, ...]
