"""A real browser for tests: Debian's Chromium, driven by Playwright; where there is none, one line says that they were skipped.

`python -m tests.browser` installs it where that is allowed, for `make browser-test`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


FOUND = find_browser()
WHERE = "no Chromium on this machine (Debian's package `chromium`; `make browser-test` installs it)"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-quic",
)  # fmt: skip
needs_browser = pytest.mark.browser


def skip_as_one(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a browser, leave of all tests that need one a single one, which is skipped for them all."""
    needing = [item for item in items if item.get_closest_marker(needs_browser.name)]
    if FOUND is None and needing:
        needing[0].add_marker(pytest.mark.skip(reason=f"{len(needing)} tests in a browser: {WHERE}"))
        config.hook.pytest_deselected(items=needing[1:])
        gone = set(needing[1:])
        items[:] = [item for item in items if item not in gone]


def install() -> str | None:
    """Install Debian's Chromium, unless there is a browser. Returns what is to be done by hand."""
    if find_browser():
        return None
    apt, sudo = shutil.which("apt-get"), shutil.which("sudo")
    order = [] if os.geteuid() == 0 else [sudo] if sudo else None
    if apt is None or order is None:
        return "there is no Chromium, and it cannot be installed from here; install it (Debian: `apt-get install chromium`)."
    for words in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        if subprocess.run([*order, apt, *words], check=False).returncode:
            return f"`apt-get {' '.join(words)}` failed; install Chromium by hand."
    return None if find_browser() else "the package `chromium` was installed, but no `chromium` is found on the PATH."


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


if __name__ == "__main__":
    sys.exit(install())
