"""The section about maps as Markdown: figures and words; the pictures are in the page."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.markdown import (
    code,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH
from fairtune.report.maps.section import REPORT_COLUMNS, ArmMaps, Column, MapsSection, shown_text


def map_lines(maps: MapsSection, study: str) -> Iterator[str]:
    for note in maps.notes:
        yield plain(note)
        yield ""
    heads = ["arm", "n", *(column.heading for column in REPORT_COLUMNS)]
    yield from table(
        heads, [[plain(arm.arm), str(arm.n), *(_cell(arm, c) for c in REPORT_COLUMNS)] for arm in maps.arms]
    )
    yield ""
    told = (shown_text(arm) if arm.shown else f"No map is shown: {arm.problem}." for arm in maps.arms)
    yield from items(f"**{plain(arm.arm)}**: {plain(text)}" for arm, text in zip(maps.arms, told, strict=True))
    yield ""
    yield f"The maps are in the HTML page; all pictures of a run: {code(f'fairtune som {study}/ARM/seed-N')}."


def _cell(arm: ArmMaps, column: Column) -> str:
    spread = arm.figures[column.name]
    if spread is None:
        return DASH
    of = f" of {arm.units_at_start}" if column.name == "units" and arm.units_at_start is not None else ""
    low_to_high = f" ({column.show(spread.low)} to {column.show(spread.high)})" if spread.n > 1 else ""
    return f"{column.show(spread.median)}{of}{low_to_high}"
