"""The console: what is shown is what was given, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text
from tests.hostile import CODES, MARKS, STYLE, raw_codes

from fairtune.core.console import Console


def shown(*things: object, terminal: bool = False, width: int = 2000) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    for thing in things:
        console.print(thing)
    return STYLE.sub("", out.getvalue())


def table(text: str) -> Table:
    found = Table(text, title=text, caption=text)
    found.add_column(Text(text))
    found.add_row(text, Text(text, style="red"))
    found.add_row(Text.assemble((text, "bold"), text), Group(text, Text(text)))
    return found


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("text", CODES.values(), ids=CODES)
def test_no_code_of_a_text_comes_through(text: str, terminal: bool) -> None:
    output = shown(text, Text(text), Text.assemble(("a", "bold"), text), table(text), terminal=terminal)
    assert raw_codes(output) == []
    assert shown(text).strip() == text.encode("unicode_escape").decode().replace("\\\\", "\\").strip()


@pytest.mark.parametrize("text", [mark for mark in MARKS if "\n" not in mark])
def test_no_text_is_markup_or_emoji(text: str) -> None:
    assert shown(text) == f"{text}\n"
    assert shown(table(text)).count(text) == 10


@pytest.mark.parametrize("width", [20, 41, 100])
def test_a_narrow_table_keeps_its_width_and_loses_no_text(width: int) -> None:
    text = "\x1b[2J" * 5 + "end"
    assert max(map(len, shown(table(text), width=width).splitlines())) <= width
    grid = Table.grid()
    grid.add_column(overflow="fold")
    grid.add_row(Text(text))
    output = shown(grid, width=width)
    assert "".join(output.split()) == r"\x1b[2J" * 5 + "end"
    assert max(map(len, output.splitlines())) <= width
