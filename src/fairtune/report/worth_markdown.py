"""The ranking as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.markdown import (
    items,
    plain,
    section,
    table,
)
from fairtune.core.numbers import confidence
from fairtune.report.content import Header, ReportContent, Worth
from fairtune.report.costs import cost_text
from fairtune.report.worth_words import (
    LEFT_OUT,
    TITLE,
    gain_cells,
    gain_heading,
    left_out_text,
    settings_text,
    worth_notes,
)


def worth_lines(content: ReportContent) -> Iterator[str]:
    """Both tables, where there is something to rank."""
    header = content.header
    heads = [
        "n",
        gain_heading(header),
        f"{confidence(header.confidence)} interval",
        "time a step",
        "verdict",
        "worth it?",
    ]
    if content.ranking:
        yield from section(TITLE)
        yield from table(
            ["", "arm", *heads],
            [[str(place), plain(one.versus.arm), *_cells(header, one)] for place, one in enumerate(content.ranking, 1)],
        )
        yield ""
        yield from items(map(plain, worth_notes(content)))
    if content.left_out:
        yield from section(LEFT_OUT)
        yield plain(left_out_text(header))
        yield ""
        rows = [
            [plain(one.versus.arm), plain(one.left_out or ""), plain(one.versus.reference)] for one in content.left_out
        ]
        cells = [_cells(header, one) for one in content.left_out]
        yield from table(["arm", "without", "is", *heads], [[*row, *own] for row, own in zip(rows, cells, strict=True)])


def _cells(header: Header, one: Worth) -> list[str]:
    answer = "; ".join(filter(None, (one.answer, settings_text(one))))
    return [str(one.versus.n), *gain_cells(header, one), cost_text(one.versus), f"**{one.versus.word}**", plain(answer)]
