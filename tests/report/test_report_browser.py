"""The report in a real browser: on a phone, on paper, in the dark, without its script, with 40 arms, and with hostile names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_ledger import QK, ArmSpec, make_study, usual_ledger
from PIL import Image
from tests.browser import needs_browser, opened, started_browser

from fairtune.report.writer import write_report

pytestmark = needs_browser
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1200, "height": 900}
MANY = 40
NARROWEST = 9.0
"""Pixels of the smallest letters on a phone."""
SIZES = """() => [...document.querySelectorAll('svg text')].filter(t => t.getClientRects().length)
  .map(t => t.getBoundingClientRect().height).filter(h => h > 0)"""
SPLIT = """() => [...document.querySelectorAll('.arm:not(.long)')].filter(a => a.getClientRects().length > 1)
  .map(a => a.textContent)"""
VISIBLE = """selector => [...document.querySelectorAll(selector)]
  .filter(e => e.checkVisibility() && getComputedStyle(e).display !== 'none').length"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(usual_ledger(tmp_path_factory.mktemp("usual") / "runs").results())["html"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arms = {"baseline": ArmSpec([336, 338, 334])}
    for place in range(MANY - 1):
        name = f"a-rather-long-name-{place:02}" if place % 3 else f"m{place}"
        arms[name] = ArmSpec([330 - place, 333 - place, 331], methods=QK)
    return write_report(make_study(tmp_path_factory.mktemp("many") / "runs", arms, margin="1.5%").results())["html"]


def brightness(page: Any) -> float:
    """Of all that a reader sees at first, from 0 to 255."""
    with Image.open(BytesIO(page.screenshot())) as picture:
        return float(np.asarray(picture.convert("L")).mean())


@pytest.mark.parametrize("which", ["usual", "many"])
def test_a_phone_shows_everything_in_its_width(browser: Any, which: str, request: pytest.FixtureRequest) -> None:
    with opened(browser, request.getfixturevalue(which), viewport=PHONE) as shown:
        assert shown.beyond <= 0
        plots = shown.page.evaluate(
            "[...document.querySelectorAll('td.plot')].map(p => p.getBoundingClientRect().right)"
        )
        assert plots
        assert max(plots) <= PHONE["width"]
        assert min(shown.page.evaluate(SIZES)) >= NARROWEST, "letters of a figure that was drawn for a wide page"
        assert shown.page.evaluate(SPLIT) == []
        assert shown.said == []


@pytest.mark.parametrize("which", ["usual", "many"])
def test_a_desk_shows_everything_in_its_width(browser: Any, which: str, request: pytest.FixtureRequest) -> None:
    with opened(browser, request.getfixturevalue(which), viewport=DESK) as shown:
        assert shown.beyond <= 0
        assert shown.page.evaluate(SPLIT) == []
        assert shown.said == []
        assert [address for address in shown.asked if not address.startswith("file:")] == []


def test_light_and_dark_follow_the_reader(browser: Any, usual: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        with opened(browser, usual, viewport=DESK, color_scheme=scheme) as shown:
            seen[scheme] = brightness(shown.page)
    assert seen["light"] > 200
    assert seen["dark"] < 70


def test_everything_is_there_without_the_script(browser: Any, usual: Path) -> None:
    with opened(browser, usual, viewport=DESK) as shown:
        with_script = shown.page.evaluate(VISIBLE, "svg, tbody tr, [data-arm]")
    made = browser.new_context(viewport=DESK, java_script_enabled=False)
    page = made.new_page()
    page.goto(usual.as_uri())
    bare = page.locator("svg, tbody tr, [data-arm]")
    assert sum(bare.nth(place).is_visible() for place in range(bare.count())) >= 0.95 * with_script
    assert page.locator("th button").count() == 0
    made.close()


def test_tables_sort_and_arms_hide(browser: Any, usual: Path) -> None:
    with opened(browser, usual, viewport=DESK) as shown:
        names = "[...document.querySelectorAll('#results table tbody tr')].map(r => r.cells[0].innerText.trim())"
        given = shown.page.evaluate(names)
        shown.page.click("#results th:nth-child(3) button")
        up = shown.page.evaluate(names)
        assert shown.page.get_attribute("#results th:nth-child(3)", "aria-sort") == "ascending"
        assert up[0] == "oelm-freeze", "the lowest difference comes first"
        assert set(up[-2:]) == {"baseline", "later"}, "what has no figure comes last"
        shown.page.click("#results th:nth-child(3) button")
        down = shown.page.evaluate(names)
        assert down[0] == "focal"
        assert set(down[-2:]) == {"baseline", "later"}
        shown.page.click("#results th:nth-child(3) button")
        assert shown.page.evaluate(names) == given
        before = shown.page.evaluate(VISIBLE, '[data-arm="2"]')
        shown.page.click('#results [data-toggle="2"]')
        assert before > 3
        assert shown.page.evaluate(VISIBLE, '[data-arm="2"]') == 0
        assert shown.page.inner_text("#forest [role=status]") == "1 of 5 arms are hidden; corrections are for all."
        assert shown.page.get_attribute('#curves [data-toggle="2"]', "aria-pressed") == "false"
        shown.page.focus('#results [data-toggle="2"]')
        shown.page.keyboard.press("Enter")
        assert shown.page.evaluate(VISIBLE, '[data-arm="2"]') == before
        assert shown.page.inner_text("#forest [role=status]") == ""
        assert shown.said == []


def test_a_link_opens_the_section_that_it_leads_to(browser: Any, usual: Path) -> None:
    with opened(browser, usual, viewport=PHONE) as shown:
        assert not shown.page.evaluate("document.getElementById('signatures').open")
        shown.page.click('nav a[href="#signatures"]')
        shown.page.wait_for_function("document.getElementById('signatures').open")
        shown.page.click("#signatures > summary")
        assert not shown.page.evaluate("document.getElementById('signatures').open")


def test_paper_is_a4_and_has_the_sections_that_were_folded(browser: Any, usual: Path) -> None:
    with opened(browser, usual) as shown:
        printed = shown.page.pdf(prefer_css_page_size=True)
        assert printed.startswith(b"%PDF")
        assert b"/MediaBox [0 0 594" in printed or b"/MediaBox [0 0 595" in printed
        shown.page.emulate_media(media="print")
        shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert shown.page.evaluate(VISIBLE, "#signatures .signatures") == 1
        assert shown.page.evaluate(VISIBLE, "nav") == 0
        shown.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not shown.page.evaluate("document.getElementById('signatures').open")


def test_a_screen_reader_is_told_what_figures_show(browser: Any, usual: Path) -> None:
    with opened(browser, usual, viewport=DESK) as shown:
        silent = shown.page.evaluate(
            """[...document.querySelectorAll('svg')].filter(s => !s.closest('[aria-hidden=true]') && !s.parentElement.closest('svg')
               && !(s.getAttribute('role') === 'img' && s.getAttribute('aria-label'))).map(s => s.outerHTML.slice(0, 80))"""
        )
        assert silent == []
        assert shown.page.evaluate("[...document.querySelectorAll('h1, h2')].length") > 5
        assert shown.page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "size"), [("phone", PHONE), ("desk", DESK)])
def test_pictures_of_every_view_are_taken(
    browser: Any, usual: Path, tmp_path: Path, device: str, size: dict[str, int], scheme: str
) -> None:
    """`FAIRTUNE_SCREENSHOTS=FOLDER` keeps them, to be looked at."""
    folder = Path(os.environ.get("FAIRTUNE_SCREENSHOTS") or tmp_path)
    with opened(browser, usual, viewport=size, color_scheme=scheme) as shown:
        taken = folder / f"report-{device}-{scheme}.png"
        shown.page.screenshot(path=taken, full_page=True)
        with Image.open(taken) as picture:
            assert picture.width == size["width"]
            ink = np.asarray(picture.convert("L"), dtype=float)
        rows = np.ptp(ink, axis=1) > 60
        assert rows.mean() > 0.25, "text and figures all the way down"
        assert np.ptp(ink[:, -4:]) < 60, "nothing runs over the right edge"
    if (device, scheme) == ("desk", "light"):
        with opened(browser, usual) as shown:
            shown.page.pdf(path=folder / "report-paper.pdf", prefer_css_page_size=True)
            assert (folder / "report-paper.pdf").stat().st_size > 20_000
