"""Shares of right answers by kind of example and by length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from fairtune.analysis.mistakes import Answers, Mask, length_bands, share_of
from fairtune.ledger.examples import Examples
from fairtune.report.mistakes.content import Group, Groups

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
