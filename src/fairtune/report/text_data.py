"""What a report says of the text that language models were trained and scored on."""

from __future__ import annotations

from collections.abc import Callable

from fairtune.core.numbers import DASH, significant, whole
from fairtune.report.content import Header, TextFacts
from fairtune.report.data_section import HASH, TITLES, DataSection

Row = tuple[str, ...]


def text_rows(data: DataSection) -> list[Row]:
    """A row a fact, a column a split."""
    facts: dict[str, Callable[[dict[str, int]], str]] = {
        "documents": lambda found: whole(found.get("documents")),
        "tokens": lambda found: whole(found.get("tokens")),
        "bytes": lambda found: whole(found.get("bytes")),
        "words": lambda found: whole(found.get("words")),
        "tokens a byte": lambda found: _ratio(found.get("tokens"), found.get("bytes")),
        "tokens a word": lambda found: _ratio(found.get("tokens"), found.get("words")),
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


def tokenizer_text(text: TextFacts) -> str:
    """The tokenizer with its size: bpe-2000 (2,000 tokens)."""
    return text.tokenizer if text.vocabulary is None else f"{text.tokenizer} ({text.vocabulary:,} tokens)"
