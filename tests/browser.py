"""A real browser for tests: Debian's Chromium, driven by Playwright; where there is none, one line says that they were skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOUND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHERE = "no Chromium on this machine (Debian's package `chromium`)"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-quic",
)  # fmt: skip
needs_browser = pytest.mark.skipif(FOUND is None, reason=WHERE)


@dataclass
class Opened:
    """A page, and what it said and asked for while it was open."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def beyond(self) -> int:
        """How far the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@contextmanager
def started_browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, place: Path | str, **context: Any) -> Iterator[Opened]:
    """A page.

    Args:
        place: a file, or an address.
        context: such as `viewport`, `color_scheme` or `java_script_enabled`.
    """
    made = browser.new_context(**context)
    found = Opened(made.new_page())
    found.page.on("console", lambda message: found.said.append(message.text))
    found.page.on("pageerror", lambda error: found.said.append(str(error)))
    found.page.on("dialog", lambda dialog: (found.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    found.page.on("request", lambda request: found.asked.append(request.url))
    try:
        found.page.goto(place.as_uri() if isinstance(place, Path) else place)
        yield found
    finally:
        made.close()
