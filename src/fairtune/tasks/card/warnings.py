"""What a data card warns of: each time what was seen, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.errors import one_of
from fairtune.core.numbers import as_percent, plural
from fairtune.ledger.data_card import DataCard, Overlap, SplitCard

MOST_REPEATED = 0.01
MOST_IMBALANCE = 10
"""Rows of the largest class for one of the smallest."""
REPEATED = {
    "training": "training. `dedupe: true` keeps the first of each",
    "validation": "the score that selects checkpoints. Remove them if they are a mistake",
    "test": "the score, and makes its interval too narrow. Remove them if they are a mistake",
}
NAMES = {"train": "training", "validation": "validation", "test": "test"}
SHARED = {
    ("train", "test"): "A model can remember them, which flatters the score.",
    ("validation", "test"): "What selects the checkpoint has then seen what is reported.",
    ("train", "validation"): "Remembered texts favour checkpoints that were trained for too long.",
}


def warnings_of(card: DataCard) -> tuple[str, ...]:
    """All warnings, the gravest first."""
    return (
        *(_overlap(found) for found in card.overlaps if found.shared),
        *(warning for name, split in card.splits.items() for warning in _split(NAMES[name], split)),
        *_languages(card),
    )


def _overlap(found: Overlap) -> str:
    exactly = "none" if not found.exactly else "all" if found.exactly == found.shared else f"{found.exactly:,}"
    return (
        f"{found.shared:,} of {found.rows:,} {NAMES[found.second]} texts ({as_percent(found.share)}) "
        f"{'is' if found.shared == 1 else 'are'} also in the {NAMES[found.first]} split, {exactly} of them letter for letter. "
        f"{SHARED[found.first, found.second]} `dedupe: true` takes such texts out of the {NAMES[found.first]} split."
    )


def _split(name: str, split: SplitCard) -> Iterator[str]:
    if split.contradictory:
        one = split.contradictory_texts == 1
        texts = "one text that has" if one else f"{split.contradictory_texts:,} texts that have"
        advice = "`dedupe: true` takes them all out" if name == "training" else "no method can get all of them right"
        yield (
            f"{split.contradictory:,} {name} rows hold {texts} several labels. Some of these labels are wrong, or the text alone "
            f"does not decide them. Look at the examples; {advice}."
        )
    if split.repeated > MOST_REPEATED * split.rows:
        yield (
            f"{split.repeated:,} of {split.rows:,} {name} rows ({as_percent(split.repeated / split.rows)}) "
            f"{'repeats' if split.repeated == 1 else 'repeat'} a text, which then counts more than once in {REPEATED[name]}."
        )
    if missing := [label for label, rows in split.classes.items() if not rows]:
        yield (
            f"The {name} split has no row of class {one_of(missing)}, so what it says of that class is nothing. Add some, or "
            "remove the class from the labels."
        )
    sizes = {label: rows for label, rows in split.classes.items() if rows}
    largest, smallest = max(sizes, key=lambda label: sizes[label]), min(sizes, key=lambda label: sizes[label])
    if sizes[largest] > MOST_IMBALANCE * sizes[smallest]:
        yield (
            f"The {name} split has {sizes[largest]:,} rows of class {largest} and {sizes[smallest]:,} of {smallest}. Always "
            f"answering {largest} is right in {as_percent(sizes[largest] / split.rows)} of them; judge by macro-F1 or MCC."
        )
    if split.empty:
        yield (
            f"{plural(split.empty, f'{name} row has', f'{name} rows have')} an empty text, for which a model can only guess "
            "the label. Fill or remove them if the data is yours."
        )


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
