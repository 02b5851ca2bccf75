"""The dashboard in a real browser: a real study as it runs, hostile names, 200 arms, a phone, the dark, no script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from made_views import HOSTILE, LONG, NAMES, MadeBuilder, made_study
from PIL import Image
from tests.browser import Opened, needs_browser, opened, started_browser
from tests.monitor.dash_server import RunningDash, running_dash
from tests.report.made_ledger import STUDY, ArmSpec, make_study
from tests.undrawn import UNDRAWN
from tests.warm import WarmPopen, started_by

from fairtune.analysis.scales import scale_of
from fairtune.core.errors import LedgerError
from fairtune.ledger.worker_signs import WorkerSign, write_sign
from fairtune.monitor import judgement
from fairtune.monitor.dash import app, feed
from fairtune.monitor.dash.pages import make_formats
from fairtune.monitor.study_builder import StudyBuilder
from fairtune.testing.runs import toy_source

pytestmark = needs_browser
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1200, "height": 900}
MANY = ("baseline", *(f"method-{place:03}-lr-{place % 7}" for place in range(1, 200)))
ROWS = "[...document.querySelectorAll('#arm-table tbody tr')].map(row => row.querySelector('.arm').textContent)"
PANELS = "() => document.querySelectorAll('#panels .uplot').length"
DRAWN = "[...document.querySelectorAll('#panels .plot-box')].reduce((sum, box) => sum + Number(box.dataset.points), 0)"
Views = dict[str, Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def at_once() -> Iterator[None]:
    """Pages are told without delay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "EVERY", 0.1)
        patch.setattr(feed, "SHARE", 1.0)
        yield


@pytest.fixture(scope="module")
def views() -> Views:
    return {
        "movie-reviews": made_study(),
        "many": made_study("many", MANY),
        HOSTILE: made_study(HOSTILE, NAMES, text=HOSTILE),
    }


@pytest.fixture(scope="module")
def dash(views: Views, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDash]:
    """A server of studies that were made by hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "StudyBuilder", lambda runs: MadeBuilder(runs, views))
        with running_dash(tmp_path_factory.mktemp("runs")) as found:
            yield found


@pytest.fixture
def look(browser: Any, dash: RunningDash) -> Callable[..., Any]:
    """Open a study, and wait until it is live."""

    def open_study(study: str, **context: Any) -> Any:
        return live(browser, f"{dash.address}/study/{study}", **context)

    return open_study


@contextmanager
def live(browser: Any, address: str, **context: Any) -> Iterator[Opened]:
    """A page that has got its first message."""
    with opened(browser, address, **context) as found:
        found.page.wait_for_selector("#connection[data-state=live]")
        yield found


def keep_picture(page: Any, name: str, **options: Any) -> None:
    """`FAIRTUNE_SCREENSHOTS=FOLDER` keeps pictures, to be looked at and for docs/live.md."""
    if folder := os.environ.get("FAIRTUNE_SCREENSHOTS"):
        page.mouse.move(0, 0)
        with Image.open(BytesIO(page.screenshot(**options))) as picture:
            few = picture.convert("RGB").quantize(
                96
            )  # a page has few colours, and a picture of them a third of the size
            few.save(Path(folder) / f"live-{name}.png", optimize=True)


def brightness(page: Any) -> float:
    with Image.open(BytesIO(page.screenshot())) as picture:
        return float(np.asarray(picture.convert("L")).mean())


def test_a_study_is_watched_while_it_runs_and_a_killed_run_says_why(
    browser: Any, tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = toy_source(tiny_model, tiny_task) | {
        "arms": {
            "baseline": {"epochs": 60},  # still running when it is killed, and when the other arm is done
            "frozen": {"methods": [{"orthogonal_qk": {"init": "keep"}}]},
        },
        "seeds": 2,
    }  # fmt: skip
    source["train"] |= {"epochs": 6, "evaluate": 13}
    source["execution"]["checkpoint_every"] = 1000
    for share in ("BUSY_SHARE", "IDLE_SHARE"):
        monkeypatch.setattr(judgement, share, 1.0)  # verdicts at once, whatever they cost the runs
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(source, sort_keys=False))
    (tmp_path / "runs").mkdir()
    words = [sys.executable, "-m", "fairtune", "run", "toy.yaml"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    study = WarmPopen(words, cwd=tmp_path, env={**os.environ, UNDRAWN: "1"}, **quiet)
    try:
        until = time.monotonic() + 60
        while not list((tmp_path / "runs").glob("toy/*/*/events.jsonl")) and time.monotonic() < until:
            time.sleep(0.05)
        with running_dash(tmp_path / "runs") as dash, opened(browser, f"{dash.address}/", viewport=DESK) as shown:
            page = shown.page
            page.click("#studies a")
            page.wait_for_selector("#running tbody tr [role=progressbar]", timeout=20_000)
            page.wait_for_function("() => document.querySelector('#panels .uplot')", timeout=20_000)
            before = page.evaluate(DRAWN)
            page.wait_for_function(f"() => {DRAWN} > {before}", timeout=20_000)
            (worker,) = started_by(study)
            os.kill(worker, signal.SIGKILL)
            page.wait_for_selector("#failures .bad", timeout=20_000)
            assert "worker" in page.inner_text("#failures .reason")
            assert page.inner_text("#state") == "running"
            assert page.inner_text("#peeking").startswith("peeking: ")
            page.wait_for_selector("#arm-table tr:nth-child(2) .thick:not([display])", state="attached", timeout=60_000)
            counts = page.eval_on_selector_all("#arm-table .count", "cells => cells.map(cell => cell.textContent)")
            assert counts == ["0 of 2", "2 of 2"]
            assert page.inner_text("#arm-table tr:nth-child(1) .trouble") == "1 failed"
            assert "to" in page.inner_text("#arm-table tr:nth-child(2) .figures small")
            keep_picture(page, "killed")
            page.click("#failures .link")
            page.wait_for_selector("#run-dialog .plot-box canvas")
            assert "worker" in page.inner_text("#run-dialog dl")
            assert page.locator("#run-dialog h3", has_text="Environment").count() == 1
            assert shown.said == []
    finally:
        study.kill()
        study.wait()


def test_hostile_names_and_texts_are_only_ever_shown(look: Callable[..., Any], dash: RunningDash, views: Views) -> None:
    with look("%3Cimg%20src%3Dx%20onerror%3D%22alert(1)%22%3E", viewport=PHONE) as shown:
        page = shown.page
        assert page.inner_text("#study") == HOSTILE
        names = page.evaluate(ROWS)
        assert names[:2] == [HOSTILE, "../../etc/passwd"]
        assert names[2] == LONG[:59] + "…"
        assert names[3:5] == list(NAMES[3:5])
        assert names[6] == "\\u202eevil", "what would turn text around is written out"
        for place in ("#failures .reason", "#warnings .reason", "#log p:last-child", "#devices .device", "#opening"):
            assert HOSTILE in page.inner_text(place), place
        page.click("#failures .link")
        page.wait_for_selector("#run-dialog .body > :not(.soft)")
        page.keyboard.press("Escape")
        page.click("#running .link")
        page.wait_for_selector("#run-dialog canvas")
        page.keyboard.press("Escape")
        page.click("#all-runs summary")
        page.wait_for_function("() => document.querySelectorAll('#all-runs tbody tr').length === 35")
        assert page.locator("main img").count() == 0
        assert page.evaluate("document.querySelectorAll('script:not([src]), [style*=onerror], [onerror]').length") == 0
        assert shown.beyond <= 0
        page.goto(f"{dash.address}/?all")
        page.wait_for_selector("#connection[data-state=live]")
        assert HOSTILE in page.inner_text("#studies")
        assert shown.beyond <= 0
        said = [
            text for text in shown.said if "Failed to load resource" not in text
        ]  # a run whose name no disk can hold
        assert said == []
        assert [address for address in shown.asked if not address.startswith(dash.address)] == []
    assert len(views) == 3


def test_hostile_names_on_a_disk_are_only_ever_shown(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same through the real builder: folders are called so, and plans, events, logs and signs say so."""
    arms = (
        "baseline",
        "<img src=x onerror=alert(1)>",
        "مرحبا بالعالم",
        "🦊",
        "x" * 240,
        "\u202eevil",
        "__proto__",
        "a b%2e#?&",
    )
    runs = tmp_path / "runs"
    made = make_study(runs, {arm: ArmSpec([330, f"{HOSTILE}\ud800\x1b[2J"]) for arm in arms})
    made.results()
    logs = runs / STUDY / "logs"
    logs.mkdir()
    (logs / f"worker-{arms[1]}.log").write_text(HOSTILE)
    write_sign(logs, WorkerSign(arms[1], HOSTILE, HOSTILE, f"{arms[1]}/seed-0", HOSTILE, load=0.5))
    monkeypatch.setattr(app, "StudyBuilder", StudyBuilder)
    with running_dash(runs) as dash, live(browser, f"{dash.address}/study/{STUDY}", viewport=PHONE) as shown:
        page = shown.page
        assert page.evaluate(ROWS) == [*arms[:4], arms[4][:59] + "…", "\\u202eevil", *arms[6:]]
        assert HOSTILE in page.inner_text("#failures .reason")
        assert HOSTILE in page.inner_text("#devices .device")
        assert HOSTILE in page.inner_text("#log")
        page.click("#all-runs summary")
        page.wait_for_function("() => document.querySelectorAll('#all-runs tbody tr').length === 16")
        for row in (1, 7):
            page.click(f"#all-runs tbody tr:nth-child({row + 1}) .link")
            page.wait_for_selector("#run-dialog .body dl")
            page.keyboard.press("Escape")
        page.click("#devices .link")
        page.wait_for_function("() => document.querySelector('#run-dialog .body').textContent.includes('<img')")
        page.keyboard.press("Escape")
        assert page.evaluate("document.querySelectorAll('main img, script:not([src]), [onerror]').length") == 0
        assert shown.beyond <= 0
        assert shown.said == []
        assert [address for address in shown.asked if not address.startswith(dash.address)] == []


def test_arms_are_sorted_by_key_hidden_everywhere_and_filtered(look: Callable[..., Any]) -> None:
    with look("movie-reviews", viewport=DESK) as shown:
        page = shown.page
        assert page.evaluate(ROWS) == ["baseline", "orthogonal-qk", "focal"]
        page.focus("#arm-table thead th:nth-child(3) button")
        page.keyboard.press("Enter")
        assert page.get_attribute("#arm-table thead th:nth-child(3)", "aria-sort") == "ascending"
        means = page.eval_on_selector_all("#arm-table td:nth-child(3) .estimate", "all => all.map(e => e.textContent)")
        assert means == sorted(means)
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        assert page.evaluate(ROWS) == ["baseline", "orthogonal-qk", "focal"]

        panels = page.evaluate(PANELS)
        page.click("[aria-label='Hide focal']")
        assert page.evaluate(ROWS) == ["baseline", "orthogonal-qk"]
        assert page.inner_text("#arms-told") == "2 of 3 arms shown (1 hidden); corrections are for all."
        assert page.get_attribute("#legend .chip:nth-child(3)", "aria-pressed") == "false"
        assert "focal" not in page.inner_text("#queue")
        assert page.evaluate(PANELS) == panels
        page.click("#legend .chip:nth-child(3)")
        assert page.evaluate(ROWS) == ["baseline", "orthogonal-qk", "focal"]

        page.fill(".filter", "qk")
        assert page.evaluate(ROWS) == ["orthogonal-qk"]
        assert page.locator("#legend .chip:not(.whole)").count() == 1
        assert shown.said == []


def test_200_arms_are_usable_and_news_leaves_focus_and_scroll_alone(look: Callable[..., Any], views: Views) -> None:
    with look("many", viewport=DESK) as shown:
        page = shown.page
        assert len(page.evaluate(ROWS)) == 200
        scrolled = page.evaluate(
            "(() => { const s = document.querySelector('.scroll'); s.scrollTop = 900; return s.scrollTop; })()"
        )
        assert scrolled == 900, "the table scrolls by itself"
        keep_picture(page, "200-arms")
        page.evaluate("document.querySelectorAll('#arm-table tbody tr')[20].same = true")
        page.focus(".filter")
        view, curves = views["many"]
        arms = (*view.arms[:20], replace(view.arms[20], n=3, mean=0.9111), *view.arms[21:])
        views["many"] = (replace(view, arms=arms), curves)
        page.wait_for_function("() => document.querySelectorAll('#arm-table tbody tr')[20].innerText.includes('91.11')")
        assert page.evaluate("document.querySelectorAll('#arm-table tbody tr')[20].same")
        assert page.evaluate("document.querySelector('.scroll').scrollTop") == 900
        assert page.evaluate("document.activeElement.className") == "filter"
        page.fill(".filter", "method-01 lr-3")
        assert page.evaluate(ROWS) == ["method-010-lr-3", "method-017-lr-3"]
        assert shown.said == []


def test_nothing_is_wider_than_a_phone_and_the_dark_is_dark(look: Callable[..., Any]) -> None:
    seen = {}
    for name, size, scheme in (("desk", DESK, "light"), ("phone", PHONE, "dark")):
        with look("movie-reviews", viewport=size, color_scheme=scheme) as shown:
            assert shown.beyond <= 0
            shown.page.wait_for_function(PANELS + " === 3")
            part = {"x": 0, "y": 0, "width": 1200, "height": 1300}
            keep_picture(shown.page, name, **({"full_page": True, "clip": part} if size is DESK else {}))
            seen[scheme] = brightness(shown.page)
            assert shown.said == []
    assert seen["light"] > 200
    assert seen["dark"] < 70
    with look("many", viewport=PHONE) as shown:
        assert shown.beyond <= 0


def test_the_line_rests_while_nobody_looks_and_a_lost_folder_is_told(look: Callable[..., Any], views: Views) -> None:
    with look("movie-reviews", viewport=DESK) as shown:
        page = shown.page
        hide = """hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
            document.dispatchEvent(new Event('visibilitychange')); }"""
        page.evaluate(hide, True)
        assert page.inner_text("#connection") == "paused while hidden"
        asked = sum(address.endswith("/feed") for address in shown.asked)
        page.evaluate(hide, False)
        page.wait_for_selector("#connection[data-state=live]")
        assert sum(address.endswith("/feed") for address in shown.asked) == asked + 1

        kept = views["movie-reviews"]
        views["movie-reviews"] = _Gone()  # as a folder that was deleted while it was watched
        page.wait_for_selector("#connection[data-state=gone]")
        assert "the folder is gone" in page.inner_text("#connection")
        assert len(page.evaluate(ROWS)) == 3, "what was last known stays"
        views["movie-reviews"] = kept
        page.wait_for_selector("#connection[data-state=live]")
        assert shown.said == []


class _Gone:
    def __getitem__(self, _: int) -> Any:
        raise LedgerError("the folder is gone")


def test_a_server_that_ends_is_told_and_one_that_comes_back_is_heard(browser: Any, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "StudyBuilder", lambda runs: MadeBuilder(runs, {"a": made_study("a")}))
        with ExitStack() as first:
            dash = first.enter_context(running_dash(tmp_path))
            with live(browser, f"{dash.address}/study/a") as shown:
                first.close()
                shown.page.wait_for_selector("#connection[data-state=lost]")
                assert shown.page.inner_text("#connection").startswith("reconnecting; as of ")
                assert len(shown.page.evaluate(ROWS)) == 3
                with running_dash(tmp_path, port=dash.port):
                    shown.page.wait_for_selector("#connection[data-state=live]")


def test_figures_are_written_as_in_a_report(look: Callable[..., Any]) -> None:
    small = [0.8421, -0.0312, 0, 1e-9, 0.99999, -0.5, 1]
    large = [4.2714, 18.361, 434.29, 9999.6, 123456.7, 1.5e9, 0.000123, -3.14159]
    write = """async ([values, formats]) => { const numbers = await import('/static/numbers.js'); numbers.useFormats(formats);
        return values.map(value => [numbers.value(value), numbers.signed(value)]); }"""
    with look("movie-reviews") as shown:
        for metric, values in (("accuracy", small), ("mcc", small), ("perplexity", small + large)):
            scale = scale_of(metric)
            found = shown.page.evaluate(write, [values, make_formats(metric)])
            assert found == [[scale.value(value), scale.signed(value)] for value in values]


def test_without_the_script_the_table_is_there_as_it_was(browser: Any, dash: RunningDash) -> None:
    with opened(browser, f"{dash.address}/study/movie-reviews", viewport=PHONE, java_script_enabled=False) as shown:
        text = shown.page.inner_text("main")
        assert "peeking: 2 of 5 seeds" in text
        assert "6 finished, 2 running, 1 failed, 6 waiting" in text
        assert "86.08 80.20 to 91.96" in text
        assert "not separable" in text
        assert "as it was when this page was loaded" in shown.page.inner_text(".top")
