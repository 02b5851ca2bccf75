"""A data card in the terminal: the splits side by side, what they share, and what to mind."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtune.ledger.data_card import DataCard
from fairtune.report.sections.data import content as data_section
from fairtune.report.terminal import shown

MOST_NAME = 30
"""Columns that the names of facts may take."""


def data_view(card: DataCard) -> Group:
    """The card of `fairtune data card`; fits in 100 columns."""
    trained = f", trained on {card.trained_on}" if card.trained_on else ""
    parts: list[RenderableType] = [
        Text.assemble((shown(f"{card.task}{trained}"), "bold"), f"  {shown(card.source)}"),
        "",
        _table(["", *data_section.TITLES.values()], data_section.split_rows(card), left=1),
        "",
        Text("What splits share", style="bold"),
        _table(data_section.overlap_heads(card), data_section.overlap_rows(card), left=2),
    ]
    examples = data_section.contradictions(card)
    if examples:
        parts += ["", Text("Texts with contradictory labels", style="bold")]
        parts.append(_table(("split", "text", "labels"), examples, left=3))
    parts += ["", Text("Warnings" if card.warnings else "No warnings", style="bold")]
    parts.append(_list(data_section.remarks(card)))
    return Group(*parts)


def _table(heads: tuple[str, ...] | list[str], rows: list[tuple[str, ...]], left: int) -> Table:
    """Args:
    left: columns, from the first, that are words.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    for place, head in enumerate(heads):
        table.add_column(
            head,
            justify="left" if place < left else "right",
            overflow="fold" if place else "ellipsis",
            style="" if place else "cyan",
            no_wrap=not place,
            max_width=None if place else MOST_NAME,
        )
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    return table


def _list(lines: list[str]) -> Table:
    grid = Table.grid(padding=0)
    grid.add_column(width=2)
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row("-", Text(shown(line)))
    return grid
