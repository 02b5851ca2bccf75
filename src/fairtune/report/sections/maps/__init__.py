"""Maps: what self-organising maps made of a hidden layer, in figures over seeds and in pictures of one seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from fairtune.core.markdown import (
    code,
    heading,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH
from fairtune.report.content import ReportContent
from fairtune.report.figures.kept import kept_figure
from fairtune.report.section import ReportSection
from fairtune.report.sections.maps.content import (
    REPORT_COLUMNS,
    ArmMaps,
    MapColumn,
    MapsSection,
    read_map_section,
    shown_text,
)


def markdown(maps: MapsSection, report: ReportContent) -> Iterator[str]:
    """Figures and words; the pictures are in the page."""
    yield from heading("Maps")
    for note in maps.notes:
        yield plain(note)
        yield ""
    heads = ["arm", "n", *(column.heading for column in REPORT_COLUMNS)]
    yield from table(
        heads, [[plain(arm.arm), str(arm.n), *(_cell(arm, c) for c in REPORT_COLUMNS)] for arm in maps.arms]
    )
    yield ""
    texts = (shown_text(arm) if arm.shown else f"No map is shown: {arm.problem}." for arm in maps.arms)
    yield from items(f"**{plain(arm.arm)}**: {plain(text)}" for arm, text in zip(maps.arms, texts, strict=True))
    yield ""
    command = code(f"fairtune som {report.header.study}/ARM/seed-N")
    yield f"The maps are in the HTML page; all pictures of a run: {command}."


def _cell(arm: ArmMaps, column: MapColumn) -> str:
    spread = arm.figures[column.name]
    if spread is None:
        return DASH
    of = f" of {arm.units_at_start}" if column.name == "units" and arm.units_at_start is not None else ""
    low_to_high = f" ({column.show(spread.low)} to {column.show(spread.high)})" if spread.n > 1 else ""
    return f"{column.show(spread.median)}{of}{low_to_high}"


def names(maps: MapsSection, report: ReportContent) -> dict[str, Any]:
    drawn = kept_figure("maps.pictures:map_texts", maps, report.header.metric)
    safe = {name: Markup(drawn[name]) if drawn[name] else None for name in ("use", "pruning")}  # of our own making
    return {
        "figures": {**drawn, **safe},
        "table_columns": REPORT_COLUMNS,
        "shown_text": shown_text,
    }


SECTION = ReportSection(
    __name__,
    lambda evidence: read_map_section(evidence.results),
    markdown,
    names,
    json=lambda maps: {"maps": maps.without_maps()},
    pictures=True,
    folded=True,
)
