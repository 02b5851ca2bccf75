"""The texts that a study kept of what it scores, found by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fairtune.core.errors import LedgerError
from fairtune.ledger.examples import FILE, AboutExamples, Examples, about_examples, read_examples

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
    about = about_examples(folder / FILE)
    if about is None:
        return KeptTexts({}, None, f"the study has no {FILE} that can be read; run it again to write one")
    if about.problem is not None:
        return KeptTexts({}, about, f"they could not be kept ({about.problem})")
    try:
        return KeptTexts({split: read_examples(folder / FILE, split) for split in about.scored}, about, None)
    except LedgerError:
        return KeptTexts({}, about, f"the study's {FILE} is damaged; run it again to write it anew")


def _cut(text: str) -> str:
    whole = " ".join(text.split())
    return whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…"
