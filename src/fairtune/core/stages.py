"""What a process is doing that may take long: a few words, and how far it is.

Code that does the work says so with `stage`; code that shows it, or sends it to another process, watches with `watched`.
Without a watcher, saying so costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

Advance = Callable[[int], None]
"""Takes how many more are done."""


class StageWatcher(Protocol):
    """Learns of stages, which may be nested."""

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins; `total` is how many there are to do, where that is known."""

    def advance(self, count: int) -> None:
        """So many more are done in the innermost stage."""

    def end(self) -> None:
        """The innermost stage has ended, or failed."""


_watcher: ContextVar[StageWatcher | None] = ContextVar("stage_watcher", default=None)


@contextmanager
def watched(watcher: StageWatcher | None) -> Iterator[None]:
    """Let a watcher know of every stage within this context; None hides them."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def stage(what: str, total: int | None = None) -> Iterator[Advance]:
    """Say what this context does, as in "tokenising texts"; gives a function that takes how many more are done."""
    watcher = _watcher.get()
    if watcher is None:
        yield lambda _: None
        return
    watcher.begin(what, total)
    try:
        yield watcher.advance
    finally:
        watcher.end()
