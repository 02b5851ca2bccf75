"""The files of a report: safe, self-contained, complete and the same every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_ledger import ArmSpec, MadeLedger
from page_script import without_script

from fairtune.analysis.results import Results
from fairtune.core.errors import LedgerError
from fairtune.report.picture import save_png
from fairtune.report.writer import write_report

HOSTILE = "<script>alert('x')<!--"


class Page(HTMLParser):
    """Tags, ids and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "srcset")]


def test_writes_three_kinds_beside_the_runs(results: Results, written: dict[str, Path]) -> None:
    assert {kind: path.name for kind, path in written.items()} == {
        "markdown": "report.md",
        "json": "report.json",
        "html": "index.html",
    }
    assert sorted(p.name for p in (results.folder / "report").iterdir()) == [
        "index.html",
        "report.json",
        "report.md",
        "result-summary.json",
    ]


def test_same_ledger_same_bytes(kept_ledger: MadeLedger, written: dict[str, Path]) -> None:
    first = {kind: path.read_bytes() for kind, path in written.items()}
    assert {kind: path.read_bytes() for kind, path in write_report(kept_ledger.results()).items()} == first


@pytest.mark.usefixtures("undrawn")
def test_a_changed_prediction_changes_every_file(ledger: MadeLedger, written: dict[str, Path]) -> None:
    assert all("84.00" in written[kind].read_text() for kind in ("markdown", "html"))
    for seed in range(3):
        ledger.predict("baseline", seed, right=308 + seed)
    paths = write_report(ledger.results())
    assert all("77.25" in paths[kind].read_text() for kind in ("markdown", "html"))
    row = json.loads(paths["json"].read_text())["rows"][0]
    assert row["summaries"]["accuracy"]["mean"] == pytest.approx(309 / 400)


def test_the_page_needs_nothing_from_elsewhere(written: dict[str, Path]) -> None:
    text = without_script(written["html"].read_text())
    page = Page(text)
    assert all(address.startswith("#") for address in page.addresses)
    assert not {"script", "link", "iframe", "object", "embed", "img"} & set(page.tags)
    assert not re.search(r"url\(\s*['\"]?(?!#)", text)
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert {address[1:] for address in page.addresses} <= set(page.ids)


def test_hostile_names_and_reasons_stay_text(make_ledger: Callable[..., MadeLedger]) -> None:
    arms = {
        "baseline": ArmSpec([330, 331]),
        "<script>$a_|b": ArmSpec([329, HOSTILE]),
        "[red]x": ArmSpec([HOSTILE, 331]),
    }
    paths = write_report(make_ledger(arms, source=HOSTILE).results())
    html, markdown = paths["html"].read_text(), paths["markdown"].read_text()
    assert "&lt;script&gt;alert" in without_script(html)
    assert not re.search(r"(?<!\\)<script", markdown.split("```")[0])
    assert r"\<script\>\$a\_\|b" in markdown


@pytest.mark.usefixtures("undrawn")
def test_what_went_wrong_is_in_every_file(ledger: MadeLedger) -> None:
    ledger.folder("retired", 0).write_plan({"key": "old"})
    for path in write_report(ledger.results()).values():
        text = path.read_text()
        assert "the loss is nan at step 3 of 20" in text
        assert "retired/seed-0: not in the newest plan" in text
        assert "later/seed-2" in text


def test_every_run_is_signed_and_no_folder_of_the_machine_is_reported(
    results: Results, written: dict[str, Path]
) -> None:
    for path in written.values():
        text = path.read_text()
        assert all(run["signature"] in text for run in results.plan["runs"])
        assert "/secret/place" not in text


def test_json_is_valid_and_finite(written: dict[str, Path]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    content = json.loads(written["json"].read_text(), parse_constant=refuse)
    later = next(row for row in content["rows"] if row["arm"] == "later")
    assert later["summaries"]["accuracy"] == {"n": 0, "mean": None, "sd": None, "low": None, "high": None}
    oelm = next(row for row in content["rows"] if row["arm"] == "oelm-freeze")
    assert (oelm["versus"]["reference"], oelm["raw"]["reference"]) == ("baseline-fast", "baseline")
    assert oelm["versus"]["family_low"] < oelm["versus"]["low"] < oelm["versus"]["high"] < oelm["versus"]["family_high"]
    assert [v["reference"] for v in content["raw_differences"]] == ["baseline"]


@pytest.mark.parametrize("right", [[None], [330], ["it broke"]])
def test_a_study_of_one_arm_can_be_reported_in_any_state(
    make_ledger: Callable[..., MadeLedger], right: list[int | str | None]
) -> None:
    paths = write_report(make_ledger({"baseline": ArmSpec(right)}, margin="1%").results())
    assert "baseline" in paths["html"].read_text()


def test_tables_have_as_many_cells_as_heads(written: dict[str, Path]) -> None:
    lines = [line for line in written["markdown"].read_text().splitlines() if line.startswith("|")]
    blocks: dict[int, set[int]] = {}
    block = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        block += following.startswith("|---")
        blocks.setdefault(block, set()).add(len(re.findall(r"(?<!\\)\|", line)))
    assert all(len(widths) == 1 for widths in blocks.values())


def test_a_folder_that_cannot_be_written_is_a_clear_error(ledger: MadeLedger) -> None:
    results = ledger.results()
    (results.folder / "report").write_text("in the way")
    with pytest.raises(LedgerError, match="the report cannot be written"):
        write_report(results)


def test_the_png_is_an_image_and_the_same_every_time(results: Results, tmp_path: Path) -> None:
    save_png(results, tmp_path / "a.png")
    save_png(results, tmp_path / "b.png")
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert content == (tmp_path / "b.png").read_bytes()
