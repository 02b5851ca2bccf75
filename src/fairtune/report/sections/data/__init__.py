"""Data: the card that was recorded with the plan, or the text that language models were trained and scored on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtune.core.markdown import (
    code,
    heading,
    items,
    plain,
    table,
)
from fairtune.report.content import ReportContent
from fairtune.report.section import ReportSection
from fairtune.report.sections.data import content
from fairtune.report.sections.data.content import HASH, TITLES, DataSection, read_data


def markdown(data: DataSection, report: ReportContent) -> Iterator[str]:
    yield from heading("Data")
    if data.notes:
        yield from items(f"**Contaminated**: {plain(note)}" for note in data.notes)
        yield ""
    if report.header.samples:
        yield from items(plain(sample.sentence) for sample in report.header.samples)
        yield ""
    if report.header.text is not None:
        yield from _table(content.text_rows(data))
        yield ""
        yield from items(map(plain, content.text_remarks(report.header, data)))
    else:
        yield from _card(data)


def _card(data: DataSection) -> Iterator[str]:
    if data.card is None:
        yield plain(content.without_card(data))
        if data.hashes:
            yield ""
            yield from items(
                f"{plain(TITLES.get(name, name))} split: {code(found[:HASH])}" for name, found in data.hashes.items()
            )
        return
    yield from _table(content.split_rows(data.card))
    yield ""
    heads, rows = content.overlap_heads(data.card), content.overlap_rows(data.card)
    yield from table(heads, [[plain(cell) for cell in row] for row in rows])
    yield ""
    yield from items(map(plain, content.remarks(data.card)))
    examples = content.contradictions(data.card)
    if examples:
        yield ""
        yield "Texts with contradictory labels:"
        yield ""
        yield from items(f"{split}: “{plain(text)}” ({plain(labels)})" for split, text, labels in examples)


def _table(rows: list[content.Row]) -> Iterator[str]:
    return table(["", *TITLES.values()], [[plain(cell) for cell in row] for row in rows])


def names(*_: object) -> dict[str, Any]:
    words = (
        content.split_rows, content.overlap_heads, content.overlap_rows, content.remarks, content.contradictions,
        content.without_card, content.text_rows, content.text_remarks,
    )  # fmt: skip
    return {show.__name__: show for show in words} | {"splits": TITLES, "hash_length": HASH}


SECTION = ReportSection(__name__, lambda evidence: read_data(evidence.results), markdown, names, folded=True)
