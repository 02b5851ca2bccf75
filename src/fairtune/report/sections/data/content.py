"""What a report says of the data: the card that was recorded with the plan, as rows that every exporter shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fairtune.analysis.results import Results
from fairtune.core.errors import one_of
from fairtune.core.files import read_sealed
from fairtune.core.numbers import DASH, as_percent, significant, whole
from fairtune.ledger.data_card import DataCard, SplitCard, TextLengths
from fairtune.report.content import Header, tokenizer_text

TITLES = {"train": "training", "validation": "validation", "test": "test"}
MOST_CLASSES = 12
"""Classes that are shown, the largest first."""
HASH = 12
Row = tuple[str, ...]
Tell = Callable[[SplitCard], str]
"""What a fact is, of a split."""


@dataclass(frozen=True)
class DataSection:
    """The data of a study.

    Args:
        card: None where the ledger has none.
        problem: why there is no card, if that is known.
        hashes: by split; empty in studies of older versions.
        notes: contaminations that the study allows.
        source: where the data came from.
        text: documents, tokens, bytes and words by split, of a language model's study; empty for examples.
    """

    card: DataCard | None
    problem: str | None
    hashes: dict[str, str]
    notes: tuple[str, ...]
    source: str
    text: dict[str, dict[str, int]]


def read_data(results: Results) -> DataSection:
    """What the ledger has."""
    task = results.plan["task"]
    card, problem = None, None
    try:
        kept = read_sealed(results.folder / "data.json")
        if "problem" in kept:
            problem = str(kept["problem"])
        else:
            card = DataCard.from_json(kept)
    except FileNotFoundError:
        pass  # language models have none
    except (OSError, ValueError):
        problem = "data.json is not what was written; running the study again writes it anew"
    if card is not None and card.fingerprint != task["fingerprint"]:
        card, problem = None, "data.json describes other data than the newest plan's"
    return DataSection(
        card=card,
        problem=problem,
        hashes=dict(task.get("hashes") or {}),
        notes=tuple(results.plan.get("notes") or ()),
        source=str(task["source"]),
        text=dict(task.get("counts") or {}) if results.kind == "language_model" else {},
    )


def split_rows(card: DataCard) -> list[Row]:
    """One row per fact, one column per split."""
    splits = [card.splits[name] for name in TITLES]
    return [(name, *(tell(split) for split in splits)) for name, tell in _facts(splits)]


def _facts(splits: list[SplitCard]) -> Iterator[tuple[str, Tell]]:
    yield "rows", lambda split: whole(split.rows)
    yield from _classes(splits)
    yield "repeated texts", lambda split: _count(split.repeated, split.rows)
    yield "… letter for letter", lambda split: _count(split.repeated_exactly, split.rows)
    yield "contradictory labels", lambda split: _count(split.contradictory, split.rows)
    yield "empty texts", lambda split: _count(split.empty, split.rows)
    yield "words (median/95 %/most)", lambda split: _lengths(split.words)
    yield "characters (median/95 %/most)", lambda split: _lengths(split.characters)
    yield "languages", _languages
    yield "… of texts sampled", lambda split: f"n = {split.languages.sampled:,}"
    yield "hash", lambda split: split.hash[:HASH]


def _classes(splits: list[SplitCard]) -> Iterator[tuple[str, Tell]]:
    """In the order of the labels; of very many, the largest."""
    sizes = splits[0].classes
    shown = list(sizes) if len(sizes) <= MOST_CLASSES else sorted(sizes, key=lambda name: -sizes[name])[:MOST_CLASSES]
    for name in shown:
        yield f"class {name}", lambda split, name=name: _count(split.classes[name], split.rows)  # type: ignore[misc]
    if len(shown) < len(sizes):
        yield (
            f"{len(sizes) - len(shown):,} other classes",
            lambda split: _count(sum(count for name, count in split.classes.items() if name not in shown), split.rows),
        )


def _count(count: int, rows: int) -> str:
    return f"{count:,} ({as_percent(count / rows)})" if count else "0"


def _lengths(found: TextLengths) -> str:
    return f"{found.median:,} / {found.p95:,} / {found.longest:,}"


def _languages(split: SplitCard) -> str:
    found = split.languages
    parts = [f"{code} {as_percent(share)}" for code, share in found.shares.items()]
    if found.uncertain:
        parts.append(f"other or uncertain {as_percent(found.uncertain)}")
    return one_of(parts) or DASH


def overlap_heads(card: DataCard) -> Row:
    heads = ("texts", "also in", "rows", "share", "letter for letter")
    return (*heads, "first text alone") if card.pairs else heads


def overlap_rows(card: DataCard) -> list[Row]:
    """What splits share: rows of the one whose text is in the other."""
    rows = []
    for found in card.overlaps:
        cells = (
            TITLES[found.second],
            TITLES[found.first],
            f"{found.shared:,} of {found.rows:,}",
            as_percent(found.share),
        )
        firsts = () if found.first_texts is None else (f"{found.first_texts:,}",)
        rows.append((*cells, f"{found.exactly:,}", *firsts))
    return rows


def dedupe_text(card: DataCard) -> str:
    """What `dedupe: true` took out, or would."""
    removal = card.removal
    gone = []
    if removal.train:
        gone.append(f"{removal.train:,} training rows ({removal.reasons()})")
    if removal.validation_in_test:
        gone.append(f"{removal.validation_in_test:,} validation rows (also in the test split)")
    took = " and ".join(gone) or "nothing"
    if card.deduplicated:
        return (
            f"`dedupe: true` took out {took}; the figures describe what is left. The test split is as it was published."
        )
    return f"`dedupe: true` would take out {took}."


def contradictions(card: DataCard) -> list[Row]:
    """Some texts with several labels: split, text, labels."""
    return [
        (TITLES[name], found.text, one_of(f"{label} {count:,}" for label, count in found.labels.items()))
        for name, split in card.splits.items()
        for found in split.contradictions
    ]


def remarks(card: DataCard) -> list[str]:
    """What is to be said of the data: warnings, and what dedupe does."""
    return [*card.warnings, dedupe_text(card)]


def without_card(data: DataSection) -> str:
    """Why there is no card."""
    return f"There is no data card: {data.problem}." if data.problem else "This study was recorded without a data card."


def text_rows(data: DataSection) -> list[Row]:
    """One row per fact, one column per split."""
    facts: dict[str, Callable[[dict[str, int]], str]] = {
        "documents": lambda found: whole(found.get("documents")),
        "tokens": lambda found: whole(found.get("tokens")),
        "bytes": lambda found: whole(found.get("bytes")),
        "words": lambda found: whole(found.get("words")),
        "tokens per byte": lambda found: _ratio(found.get("tokens"), found.get("bytes")),
        "tokens per word": lambda found: _ratio(found.get("tokens"), found.get("words")),
    }
    rows = [(name, *(tell(data.text.get(split, {})) for split in TITLES)) for name, tell in facts.items()]
    hashes = [("hash", *(data.hashes.get(split, DASH)[:HASH] for split in TITLES))] if data.hashes else []
    return rows + hashes


def _ratio(above: int | None, below: int | None) -> str:
    return significant(above / below if above is not None and below else None)


def text_remarks(header: Header, data: DataSection) -> list[str]:
    """Where the text is from and how it was cut."""
    if header.text is None:
        return []
    lengths = " or ".join(f"{length:,}" for length in header.text.blocks) or "unknown length"
    cut = [TITLES[split] for split in TITLES if data.text.get(split, {}).get("cut")]
    remarks = [
        f"Source: {data.source}.",
        f"Tokenizer: {tokenizer_text(header.text)}, the same for all arms. Tokens count the end of each document as one; "
        "bytes and words are of the text alone.",
        f"Training is on blocks of {lengths} tokens; documents follow each other in them, with the end of a document "
        "between. Validation and test score every token once.",
    ]
    if cut:
        remarks.append(f"Cut short where the study says so, in the last document: {' and '.join(cut)}.")
    return remarks
