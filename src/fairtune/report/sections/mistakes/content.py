"""What the section about mistakes says, and how it follows from the answers of the runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fairtune.analysis.arm_pairs import counts_as_learned
from fairtune.analysis.mistakes import Answers, Classes, Floats, Mask, confusion, read_answers, together
from fairtune.analysis.results import Results
from fairtune.report.sections.mistakes.examples import Groups, KeptTexts, by_kind, by_length, read_texts


@dataclass(frozen=True)
class RunCount:
    """A number over runs: its mean, the lowest and the highest."""

    mean: float
    low: int
    high: int


@dataclass(frozen=True)
class ShownExample:
    """An example that was got wrong.

    Args:
        texts: one, or the two of a pair, cut; empty where they were not kept.
        predicted: the class that most runs took it for.
        wrong: the share of runs that got it wrong.
        other_wrong: the same of the arm compared with; None where there is none.
        confidence: of those that got it wrong, the mean probability of the class they gave.
    """

    id: str
    texts: tuple[str, ...]
    label: str
    predicted: str
    wrong: float
    other_wrong: float | None
    confidence: float


@dataclass(frozen=True)
class ArmMistakes:
    """What one arm gets wrong.

    Args:
        n: runs.
        confusion: [true class][predicted class], means over runs.
        false_positives, false_negatives: of the second of two classes; None where there are more.
        gained, lost: examples that most of its runs, but not most of the reference's, get right or wrong; the plainest first.
        gains, losses: how many of them there are.
    """

    arm: str
    n: int
    wrong: RunCount
    confusion: tuple[tuple[float, ...], ...]
    false_positives: RunCount | None
    false_negatives: RunCount | None
    gained: tuple[ShownExample, ...]
    lost: tuple[ShownExample, ...]
    gains: int | None
    losses: int | None


@dataclass(frozen=True)
class MistakesSection:
    """All that is reported about mistakes.

    Args:
        examples: of the test split.
        hard: what most runs of all arms get wrong, the plainest first; `hard_total` of them there are.
        places: of the arms among all arms of the study, which fixes their colours.
        notes: how to read it.
    """

    labels: tuple[str, ...]
    reference: str
    examples: int
    runs: int
    arms: tuple[ArmMistakes, ...]
    hard: tuple[ShownExample, ...]
    hard_total: int
    kinds: Groups | None
    lengths: Groups | None
    places: dict[str, int]
    notes: tuple[str, ...]


SHOWN = 15
"""Examples in a list."""


def read_mistakes(results: Results) -> MistakesSection | None:
    """Everything about mistakes; None for language models, and before any run is finished."""
    if results.kind != "classify":
        return None
    answers = {arm: found for arm in results.arms if (found := _answers(results, arm, "test")) is not None}
    if not answers:
        return None
    first = answers.get(results.reference) or next(iter(answers.values()))
    answers = {arm: found for arm, found in answers.items() if found.ids == first.ids}
    labels, texts = tuple(map(str, results.plan["task"]["labels"])), read_texts(results.folder)
    everyone = together([found for arm, found in answers.items() if counts_as_learned(results, arm)] or [first])
    hard = _plainest(everyone, everyone.share_right < 0.5, 1 - everyone.share_right, labels, texts)
    confidence, kinds = results.confidence, None
    for split in ("test", "validation"):
        examples = texts.of(split)
        if kinds is not None or examples is None or all(kind is None for kind in examples.kinds):
            continue  # nothing is read for nothing
        scored = {arm: found for arm in answers if (found := _answers(results, arm, split)) is not None}
        kinds = by_kind(scored, examples, split, confidence)
    lengths = by_length(answers, texts.of("test"), "test", confidence)
    return MistakesSection(
        labels=labels,
        reference=results.reference,
        examples=len(first.ids),
        runs=everyone.runs,
        arms=tuple(
            _arm(arm, found, answers.get(results.reference) if arm != results.reference else None, labels, texts)
            for arm, found in answers.items()
        ),
        hard=hard,
        hard_total=int((everyone.share_right < 0.5).sum()),
        kinds=kinds,
        lengths=lengths,
        places={arm: place for place, arm in enumerate(results.arms)},
        notes=tuple(texts.notes()),
    )


def _answers(results: Results, arm: str, split: str) -> Answers | None:
    return read_answers(results.finished(arm), split)


def _arm(arm: str, own: Answers, other: Answers | None, labels: tuple[str, ...], texts: KeptTexts) -> ArmMistakes:
    two = len(labels) == 2
    gained = lost = np.zeros(len(own.ids), dtype=np.bool_)
    ahead = np.zeros(len(own.ids))
    if other is not None:
        ahead = own.share_right - other.share_right
        gained, lost = (
            (own.share_right > 0.5) & (other.share_right < 0.5),
            (own.share_right < 0.5) & (other.share_right > 0.5),
        )
    return ArmMistakes(
        arm=arm,
        n=own.runs,
        wrong=_count(~own.right),
        confusion=tuple(tuple(row) for row in confusion(own, len(labels)).tolist()),
        false_positives=_count((own.labels == 0) & (own.predicted == 1)) if two else None,
        false_negatives=_count((own.labels == 1) & (own.predicted == 0)) if two else None,
        gained=_plainest(other, gained, ahead, labels, texts, own) if other is not None else (),
        lost=_plainest(own, lost, -ahead, labels, texts, other) if other is not None else (),
        gains=None if other is None else int(gained.sum()),
        losses=None if other is None else int(lost.sum()),
    )


def _count(found: Mask) -> RunCount:
    each = found.sum(axis=1)
    return RunCount(float(each.mean()), int(each.min()), int(each.max()))


def _plainest(
    wrong: Answers, chosen: Mask, plain: Floats, labels: tuple[str, ...], texts: KeptTexts, other: Answers | None = None
) -> tuple[ShownExample, ...]:
    """The plainest of some examples, which most runs got wrong; among equals the most confident.

    Args:
        plain: how plain each is.
        other: the runs of another arm, to be reported beside them.
    """
    sure = _confidence(wrong)
    order = [int(i) for i in np.lexsort((-sure, -plain)) if chosen[i]][:SHOWN]
    return tuple(
        ShownExample(
            id=wrong.ids[i],
            texts=texts.find("test", wrong.ids[i]),
            label=labels[wrong.labels[i]],
            predicted=labels[_usual(wrong.predicted[:, i], int(wrong.labels[i]))],
            wrong=float(1 - wrong.share_right[i]),
            other_wrong=None if other is None else float(1 - other.share_right[i]),
            confidence=float(sure[i]),
        )
        for i in order
    )


def _confidence(answers: Answers) -> Floats:
    """Of each example, the mean confidence of the runs that got it wrong; 0 where none did."""
    wrong = ~answers.right
    total = (answers.confidence * wrong).sum(axis=0)
    return np.asarray(total / np.maximum(1, wrong.sum(axis=0)))


def _usual(predicted: Classes, label: int) -> int:
    """The class that it was most often taken for."""
    found = Counter(int(one) for one in predicted if one != label)
    return max(sorted(found), key=lambda one: found[one]) if found else label


MOST_ARMS = 4
"""That are drawn."""


def drawn_arms(section: MistakesSection) -> list[str]:
    """The reference and the next arms."""
    arms = [arm.arm for arm in section.arms]
    first = [arm for arm in arms if arm == section.reference]
    return (first + [arm for arm in arms if arm != section.reference])[:MOST_ARMS]
