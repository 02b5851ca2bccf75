"""Markdown for a code host: what matters first and open, long parts folded, code shown as code."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from made_ledger import ArmSpec, MadeLedger
from markdown_it import MarkdownIt

from fairtune.analysis.results import Results
from fairtune.core.markdown import prose
from fairtune.report.content import ReportContent
from fairtune.report.markdown import LONG, MarkdownExporter
from fairtune.report.writer import make_content


@pytest.fixture(scope="module")
def text(content: ReportContent) -> str:
    return MarkdownExporter().render(content)


def unfolded(text: str) -> str:
    """What a reader sees before anything is opened."""
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def test_it_begins_with_the_opening_sentence_and_the_cautions(text: str, results: Results) -> None:
    verdict = results.verdict()
    paragraphs = [paragraph.replace("\\", "") for paragraph in text.split("\n\n")]
    assert paragraphs[0] == "# made"
    assert paragraphs[2] == verdict.opening
    assert paragraphs[3].startswith(f"- **{verdict.cautions[0].grade.capitalize()}**: {verdict.cautions[0].seen}")


def test_the_first_table_has_every_arm_with_its_verdict_second(text: str, results: Results) -> None:
    rows = re.search(r"## Results\n\n((?:\|.*\n)+)", text)
    assert rows is not None
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[1].splitlines()]
    assert cells[0][:3] == ["arm", "verdict", "n"]
    words = {cell[0]: re.sub(r"\*\*|\s\(.*\)", "", cell[1]) for cell in cells[2:]}
    assert words == {finding.arm: finding.word for finding in results.verdict().findings}
    assert max(map(len, rows[1].splitlines())) < 160, "no row is a paragraph"


def test_long_parts_are_folded_and_what_went_wrong_is_not(text: str) -> None:
    assert text.count("<details>") == text.count("</details>") > 3
    seen = unfolded(text)
    assert "the loss is nan at step 3 of 20" in seen
    assert "## Signatures" in seen
    assert "fairtune:0.1.0|protocol:1|arm:baseline|seed:0" not in seen
    parts = re.split(r"^## .*$", seen, flags=re.MULTILINE)[1:]
    assert sum(len(part.strip().splitlines()) >= LONG + 5 for part in parts) == 0


def test_folds_hold_markdown_that_is_read_as_such(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert all(re.fullmatch(r"<details>\n<summary>[^<>]+</summary>|</details>", block) for block in html)
    heads = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert heads[:3] == ["made", "Results", "All figures"]


def test_commands_are_code_not_backslashes(text: str) -> None:
    assert "`fairtune time`" in text
    assert "\\`" not in text


def test_twelve_arms_fit_a_screen(make_ledger: Callable[..., MadeLedger]) -> None:
    arms = {"baseline": ArmSpec([330, 331])} | {f"arm-{n}": ArmSpec([320 + n, 321]) for n in range(11)}
    text = MarkdownExporter().render(make_content(make_ledger(arms).results()))
    assert len(unfolded(text).splitlines()) < 100


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("run `fairtune time` now", "run `fairtune time` now"),
        ("a_b `c_d` e*f", r"a\_b `c_d` e\*f"),
        ("one ` alone", r"one \` alone"),
        ("`a|b` | c", r"\`a\|b\` \| c"),
        ("`<b>` <b>", r"`<b>` \<b\>"),
        ("- `x`", r"\- `x`"),
        ("two\nlines of `code\nspan`", "two lines of `code span`"),
    ],
)
def test_prose_keeps_code_and_nothing_else(given: str, shown: str) -> None:
    assert prose(given) == shown
