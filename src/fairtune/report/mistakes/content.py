"""What the section about mistakes says, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from fairtune.analysis.mistakes import Share


@dataclass(frozen=True)
class Count:
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
    wrong: Count
    confusion: tuple[tuple[float, ...], ...]
    false_positives: Count | None
    false_negatives: Count | None
    gained: tuple[ShownExample, ...]
    lost: tuple[ShownExample, ...]
    gains: int | None
    losses: int | None


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


@dataclass(frozen=True)
class MistakesSection:
    """All that is told of mistakes.

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
