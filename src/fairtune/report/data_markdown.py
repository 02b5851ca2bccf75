"""The data of a study as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.markdown import (
    code,
    items,
    plain,
    table,
)
from fairtune.report import data_section
from fairtune.report.content import Header
from fairtune.report.data_section import HASH, TITLES, DataSection
from fairtune.report.text_data import text_remarks, text_rows


def text_lines(header: Header, data: DataSection) -> Iterator[str]:
    """The section of a language model's study."""
    if data.notes:
        yield from items(f"**Contaminated**: {plain(note)}" for note in data.notes)
        yield ""
    yield from table(["", *TITLES.values()], [[plain(cell) for cell in row] for row in text_rows(data)])
    yield ""
    yield from items(map(plain, text_remarks(header, data)))


def data_lines(data: DataSection) -> Iterator[str]:
    """The section without its title."""
    if data.notes:
        yield from items(f"**Contaminated**: {plain(note)}" for note in data.notes)
        yield ""
    if data.card is None:
        yield plain(data_section.without_card(data))
        if data.hashes:
            yield ""
            yield from items(
                f"{plain(TITLES.get(name, name))} split: {code(found[:HASH])}" for name, found in data.hashes.items()
            )
        return
    yield from table(
        ["", *TITLES.values()], [[plain(cell) for cell in row] for row in data_section.split_rows(data.card)]
    )
    yield ""
    heads, rows = data_section.overlap_heads(data.card), data_section.overlap_rows(data.card)
    yield from table(heads, [[plain(cell) for cell in row] for row in rows])
    yield ""
    yield from items(map(plain, data_section.remarks(data.card)))
    examples = data_section.contradictions(data.card)
    if examples:
        yield ""
        yield "Texts with contradictory labels:"
        yield ""
        yield from items(f"{split}: “{plain(text)}” ({plain(labels)})" for split, text, labels in examples)
