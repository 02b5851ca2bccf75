"""The data card: what a task's data is like, and what of it should make one pause. Plain data, to be kept and shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from fairtune.tasks.card.languages import Languages
from fairtune.tasks.duplicates import Removal


def as_percent(share: float) -> str:
    """A share in words: few are never shown as none."""
    return "under 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


@dataclass(frozen=True)
class Lengths:
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
    words: Lengths
    characters: Lengths
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
        known: contaminations that are known of data like this.
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
    known: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> DataCard:
        """The card that was kept.

        Raises:
            ValueError: it is not a card.
        """
        return _reader().validate_python(content)


@cache
def _reader() -> TypeAdapter[DataCard]:
    return TypeAdapter(DataCard)
