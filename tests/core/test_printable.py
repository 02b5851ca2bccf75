"""Codes are written out, once and everywhere: no way to the terminal goes around it."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import warnings
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text
from tests.hostile import ALL, CODES, MARKS, STYLE, raw_codes

import fairtune
from fairtune.core.console import Console, make_messages_printable
from fairtune.core.printable import (
    LINES,
    printable,
    printable_json,
    with_printable_texts,
)

ROOT = Path(fairtune.__file__).parent


@pytest.mark.parametrize("text", CODES.values(), ids=CODES)
def test_every_code_is_written_out_and_the_rest_stays(text: str) -> None:
    shown = printable(text)
    assert raw_codes(shown) == []
    assert shown.isprintable()
    assert shown == text.encode("unicode_escape").decode().replace(r"\\", "\\"), "written as Python writes it"
    assert printable(shown) == shown


def test_lines_stay_where_they_are_wanted() -> None:
    assert printable("a\n\tb\r\n", LINES) == "a\n\tb\\r\n"


@pytest.mark.parametrize(
    "text",
    ["", "plain", "Zoë – “naïve”", "日本語", "👩‍👩‍👧 ❤️", "שלום\u200f (א)", "می‌خواهم", r"C:\new\x1b", "a\u00a0b\u00adc"],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) is text or printable(text) == text


@pytest.mark.parametrize("text", [ALL, "\ud800", "Zoë\\x1b", '"\x7f"'])
def test_json_means_the_same_without_a_code(text: str) -> None:
    value = {text: [text, 1.5, None]}
    shown = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert raw_codes(shown) == []
    assert json.loads(shown) == value
    assert printable_json('{"a": "Zoë"}') == '{"a": "Zoë"}'


@dataclass(frozen=True)
class Named:
    name: str
    parts: tuple[object, ...] = ()


def test_texts_within_data_are_made_printable_and_clean_data_stays_itself() -> None:
    clean = Named("a", (1, {"b": [Named("c\nd")]}))
    assert with_printable_texts(clean) is clean
    made = with_printable_texts(Named("a\x1b", (1, {"b\x9b": [Named("c\x00")], "d": 2.5})))
    assert made == Named(r"a\x1b", (1, {r"b\x9b": [Named(r"c\x00")], "d": 2.5}))


def test_messages_of_libraries_are_written_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    factory, logged = logging.getLogRecordFactory(), StringIO()
    handler = logging.StreamHandler(logged)
    try:
        make_messages_printable()
        log = logging.getLogger("somebody.else")
        log.addHandler(handler)
        log.warning("%s cannot be read", ALL)
    finally:
        logging.setLogRecordFactory(factory)
        handler.close()
        log.removeHandler(handler)
    warned = warnings.formatwarning(ALL, UserWarning, "a.py", 1)
    try:
        raise RuntimeError(ALL)
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    for said in (logged.getvalue(), warned, capsys.readouterr().err):
        assert r"\x1b[2J" in said
        assert raw_codes(said) == []


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        (r"\btyper\.echo\(", {"cli/command.py", "cli/app.py"}),
        (r"rich\.console import .*\bConsole\b|rich\.print|rich import print|get_console", set()),
        (r"(?<![\w.])print\((?!\"\\nstopping after this step)", set()),
        (r"from_markup|markup=True", set()),
        (r"TextColumn\((?!.*(markup=False|rows\"\)|rate\]|\"left\"\)))", set()),
        (r"autoescape=(?!True)", set()),
    ],
    ids=["echo", "console", "print", "markup", "columns", "escaping"],
)
def test_nothing_is_shown_on_another_way(pattern: str, where: set[str]) -> None:
    found = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if re.search(pattern, file.read_text(encoding="utf-8"))
    }
    assert found <= where


def test_templates_escape_everything_but_words_of_their_own() -> None:
    for template in ROOT.rglob("*.j2"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"(?<!</ul>')(?<!<ul>') *\| *safe", text.replace("'<ul>' |", "").replace("'</ul>' |", ""))
        own = text.count("<script>{{ script }}</script>") if template.name == "page.html.j2" else 0
        own += len(
            re.findall(r'<script(?: type="module")? src="/static/[\w.]+"(?: defer)?></script>', text)
        )  # the dashboard's
        assert text.count("<script") == own, "what runs is our own"
        assert "autoescape" not in text


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
