"""Without a browser, one test is skipped for all that need one, and `make browser-test` says what to install."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from tests import browser


class Item:
    """As much of a test as is asked for its marks."""

    def __init__(self, *marks: str) -> None:
        self.marks, self.added = marks, list[Any]()

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: Any) -> None:
        self.added.append(mark)


@pytest.mark.parametrize("found", [None, "/usr/bin/chromium"])
def test_one_is_skipped_for_all(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    monkeypatch.setattr(browser, "FOUND", found)
    gone: list[Any] = []
    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)))
    first, second, plain = Item("browser"), Item("browser", "slow"), Item("slow")
    items: list[Any] = [plain, first, second]
    browser.skip_as_one(config, items)
    if found:
        assert (items, gone, first.added) == ([plain, first, second], [], [])
        return
    assert (items, gone) == ([plain, first], [second])
    (mark,) = first.added
    assert mark.kwargs["reason"].startswith("2 tests in a browser: no Chromium on this machine")


@pytest.mark.parametrize(
    ("user", "tools", "ordered"),
    [
        (
            0,
            {"apt-get"},
            [["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"]],
        ),
        (1000, {"apt-get", "sudo"}, [["sudo", "apt-get", "update"]]),
        (1000, {"apt-get"}, []),
        (0, set(), []),
        (0, {"chromium"}, []),
    ],
)
def test_it_is_installed_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, user: int, tools: set[str], ordered: list[list[str]]
) -> None:
    done: list[list[str]] = []

    def run(words: list[str], **_: Any) -> Any:
        done.append(words)
        if "chromium" in words:
            tools.add("chromium")
        return SimpleNamespace(returncode=int("sudo" in words))  # whose password is not known

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda name: name if name in tools else None)
    monkeypatch.setattr(browser.subprocess, "run", run)
    said = browser.install()
    assert done == ordered
    assert (said is None) == ("chromium" in tools)
    assert said is None or "install" in said
