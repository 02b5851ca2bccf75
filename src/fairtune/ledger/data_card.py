"""The data card as it is kept with a study: what a task's data is like, and what of it should make one pause. Plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from fairtune.core.errors import one_of


@dataclass(frozen=True)
class Languages:
    """Languages of a sample.

    Args:
        sampled: texts that were read.
        shares: by ISO 639 code, the largest first.
        uncertain: the share of the others: languages that are rarer, and texts too short to tell.
    """

    sampled: int
    shares: dict[str, float]
    uncertain: float


@dataclass(frozen=True)
class Removal:
    """How many examples `dedupe: true` takes out, each under the first reason that holds.

    Args:
        in_test, in_validation, contradictory, repeated: of the training split.
        validation_in_test: of the validation split.
    """

    in_test: int
    in_validation: int
    contradictory: int
    repeated: int
    validation_in_test: int

    @property
    def train(self) -> int:
        return self.in_test + self.in_validation + self.contradictory + self.repeated

    def __str__(self) -> str:
        gone = [
            f"{n:,} {name} rows" for n, name in ((self.train, "train"), (self.validation_in_test, "validation")) if n
        ]
        return f"{' and '.join(gone) or 'nothing'} removed"

    def reasons(self) -> str:
        """The counts of the training split in words; empty if there are none."""
        counts = {
            "also in the test split": self.in_test,
            "also in the validation split": self.in_validation,
            "with contradictory labels": self.contradictory,
            "repeated": self.repeated,
        }
        return one_of(f"{count:,} {reason}" for reason, count in counts.items() if count)


@dataclass(frozen=True)
class TextLengths:
    """Lengths of a split's examples; of a pair, both texts together."""

    median: int
    p95: int
    longest: int


@dataclass(frozen=True)
class Contradiction:
    """A text that has several labels.

    Args:
        text: its beginning.
        labels: how often it has each.
    """

    text: str
    labels: dict[str, int]


@dataclass(frozen=True)
class SplitCard:
    """One split.

    Args:
        hash: the split's identity.
        classes: rows by label, in the order of the labels.
        repeated_exactly, repeated: rows whose text occurred before: letter for letter, or in normal form.
        contradictory: rows whose text, in normal form, has another label elsewhere in the split ...
        contradictory_texts: ... the number of such texts, and some of them.
        empty: rows with a text of nothing, or of spaces.
        words: by spaces, which some languages do not write.
    """

    hash: str
    rows: int
    classes: dict[str, int]
    repeated_exactly: int
    repeated: int
    contradictory: int
    contradictory_texts: int
    contradictions: tuple[Contradiction, ...]
    empty: int
    words: TextLengths
    characters: TextLengths
    languages: Languages


@dataclass(frozen=True)
class Overlap:
    """What two splits share, counted in rows of the second.

    Args:
        rows: rows of the second split.
        exactly, shared: of them, those whose text is in the first split: letter for letter, or in normal form.
        first_texts: for pairs, rows whose first text is the first text of some pair there.
    """

    first: str
    second: str
    rows: int
    exactly: int
    shared: int
    first_texts: int | None

    @property
    def share(self) -> float:
        return self.shared / self.rows


@dataclass(frozen=True)
class DataCard:
    """A task's data.

    Args:
        removal: what `dedupe: true` would take out; where it did, what it took.
        warnings: what was seen, why it matters, what to do.
    """

    task: str
    source: str
    fingerprint: str
    pairs: bool
    trained_on: str | None
    deduplicated: bool
    splits: dict[str, SplitCard]
    overlaps: tuple[Overlap, ...]
    removal: Removal
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> DataCard:
        """The card that was kept.

        Raises:
            ValueError: it is not a card.
        """
        return TypeAdapter(cls).validate_python(content)
