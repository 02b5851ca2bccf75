"""What a data card warns of: each time what was seen, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.errors import one_of
from fairtune.core.numbers import as_percent
from fairtune.ledger.data_card import DataCard, SplitCard

MOST_REPEATED = 0.01
MOST_IMBALANCE = 10
"""Rows of the largest class for one of the smallest."""
NAMES = {"train": "training", "validation": "validation", "test": "test"}
SHARED = {
    ("train", "test"): "A model can remember them, which flatters the score.",
    ("validation", "test"): "What selects the checkpoint has then seen what is reported.",
    ("train", "validation"): "Remembered texts favour checkpoints that were trained for too long.",
}


def warnings_of(card: DataCard) -> tuple[str, ...]:
    """All warnings, the gravest first."""
    return (
        *_overlaps(card),
        *(one for name, split in card.splits.items() for one in _split(NAMES[name], split)),
        *_languages(card),
    )


def _overlaps(card: DataCard) -> Iterator[str]:
    for found in card.overlaps:
        if found.shared:
            first, second = NAMES[found.first], NAMES[found.second]
            yield (
                f"{found.shared:,} of {found.rows:,} {second} texts ({as_percent(found.share)}), {found.exactly:,} of them letter "
                f"for letter, are also in the {first} split. {SHARED[found.first, found.second]} `dedupe: true` removes them."
            )


def _split(name: str, split: SplitCard) -> Iterator[str]:
    advice = "`dedupe: true` takes them out" if name == "training" else "remove them if they are a mistake"
    if split.contradictory:
        yield (
            f"{split.contradictory:,} {name} rows hold texts with several labels ({split.contradictory_texts:,} different texts). "
            f"Some of these labels are wrong, or the text alone does not decide them. Look at the examples; {advice}."
        )
    if split.repeated > MOST_REPEATED * split.rows:
        share = as_percent(split.repeated / split.rows)
        yield f"{split.repeated:,} of {split.rows:,} {name} rows ({share}) repeat a text, which then counts twice; {advice}."
    if missing := [label for label, rows in split.classes.items() if not rows]:
        yield f"The {name} split has no row of class {one_of(missing)} and says nothing of it. Add some, or drop the label."
    sizes = sorted((rows, label) for label, rows in split.classes.items() if rows)
    (smallest, rare), (largest, common) = sizes[0], sizes[-1]
    if largest > MOST_IMBALANCE * smallest:
        yield (
            f"The {name} split has {largest:,} rows of class {common} and {smallest:,} of {rare}. Always answering {common} is "
            f"right in {as_percent(largest / split.rows)} of them; judge by macro-F1 or MCC."
        )
    if split.empty:
        yield f"The {name} split has {split.empty:,} empty texts, whose labels a model can only guess. Fill or remove them."


def _languages(card: DataCard) -> Iterator[str]:
    for name, split in card.splits.items():
        shares = split.languages.shares
        if len(shares) > 1:
            listed = one_of(f"{code} {as_percent(share)}" for code, share in shares.items())
            yield (
                f"The {NAMES[name]} split seems to hold several languages ({listed} of {split.languages.sampled:,} sampled texts). "
                "A model and a tokenizer made for one of them do worse on the others; use a multilingual model, or one language."
            )
    trained, reported = (next(iter(card.splits[name].languages.shares), None) for name in ("train", "test"))
    if trained and reported and trained != reported:
        yield (
            f"Training texts seem to be in {trained}, test texts in {reported}. The score then tells how well a model "
            "carries over from one language to the other, which takes a multilingual model."
        )
