"""What a data card warns of: each time what was seen, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.errors import one_of
from fairtune.core.numbers import as_percent
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


def warnings_of(card: DataCard) -> tuple[str, ...]:
    """All warnings, the gravest first."""
    return (
        *(_overlap(found) for found in card.overlaps if found.shared),
        *(warning for name, split in card.splits.items() for warning in _split(NAMES[name], split)),
        *_languages(card),
    )


def _overlap(found: Overlap) -> str:
    exactly = "none" if not found.exactly else "all" if found.exactly == found.shared else f"{found.exactly:,}"
    seen = (
        f"{found.shared:,} of {found.rows:,} {NAMES[found.second]} texts ({as_percent(found.share)}) {_is_or_are(found.shared)} "
        f"also in the {NAMES[found.first]} split, {exactly} of them letter for letter."
    )
    out = f"`dedupe: true` takes such texts out of the {NAMES[found.first]} split."
    if (found.first, found.second) == ("train", "test"):
        return f"{seen} A model can remember them, which flatters the score. {out}"
    if found.second == "test":
        return f"{seen} What selects the checkpoint has then seen what is reported. {out}"
    return f"{seen} Remembered texts favour checkpoints that were trained for too long. {out}"


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _split(name: str, split: SplitCard) -> Iterator[str]:
    if split.contradictory:
        texts = (
            "one text that has" if split.contradictory_texts == 1 else f"{split.contradictory_texts:,} texts that have"
        )
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
    yield from _balance(name, split)
    if split.empty:
        yield (
            f"{split.empty:,} {name} row{'s have' if split.empty > 1 else ' has'} an empty text, for which a model can only guess "
            "the label. Fill or remove them if the data is yours."
        )


def _balance(name: str, split: SplitCard) -> Iterator[str]:
    missing = [label for label, rows in split.classes.items() if not rows]
    if missing:
        yield (
            f"The {name} split has no row of class {one_of(missing)}, so what it says of that class is nothing. Add some, or "
            "remove the class from the labels."
        )
    present = {label: rows for label, rows in split.classes.items() if rows}
    largest, smallest = max(present, key=lambda k: present[k]), min(present, key=lambda k: present[k])
    if present[largest] > MOST_IMBALANCE * present[smallest]:
        yield (
            f"The {name} split has {present[largest]:,} rows of class {largest} and {present[smallest]:,} of {smallest}. Always "
            f"answering {largest} is right in {as_percent(present[largest] / split.rows)} of them; judge by macro-F1 or MCC."
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
    main = {name: next(iter(split.languages.shares), None) for name, split in card.splits.items()}
    if main["train"] and main["test"] and main["train"] != main["test"]:
        yield (
            f"Training texts seem to be in {main['train']}, test texts in {main['test']}. The score then tells how well a model "
            f"carries over from one language to the other, which takes a multilingual model."
        )
