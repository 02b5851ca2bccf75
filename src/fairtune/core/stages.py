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
    """Learns of stages, which may be within each other."""

    def begin(self, what: str, total: int | None) -> None:
        """A stage begins.

        Args:
            total: how many there are to do, where that is known.
        """

    def advance(self, count: int) -> None:
        """So many more are done in the innermost stage."""

    def end(self) -> None:
        """The innermost stage is over, whatever came of it."""


_watcher: ContextVar[StageWatcher | None] = ContextVar("stage_watcher", default=None)


@contextmanager
def watched(watcher: StageWatcher | None) -> Iterator[None]:
    """Let a watcher know of every stage meanwhile; None lets none."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def stage(what: str, total: int | None = None) -> Iterator[Advance]:
    """Say what is done meanwhile; gives what takes how many more are done.

    Args:
        what: as in "tokenising texts".
        total: how many there are to do, where that is known.
    """
    watcher = _watcher.get()
    if watcher is None:
        yield _nobody
        return
    watcher.begin(what, total)
    try:
        yield watcher.advance
    finally:
        watcher.end()


def _nobody(count: int) -> None: ...
