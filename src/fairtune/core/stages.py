"""What a process is doing that may take long: a few words, how far it is, and whether it should stop.

Code that does the work says so with `stage`; code that shows it, or sends it to another process, watches with `watched`, and code
that may want it stopped says so with `stoppable`. Without either, saying so costs nothing.
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
_check_stop: ContextVar[Callable[[], None]] = ContextVar("check_stop", default=lambda: None)


@contextmanager
def watched(watcher: StageWatcher | None) -> Iterator[None]:
    """Let a watcher know of every stage within this context; None hides them."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def stoppable(check: Callable[[], None]) -> Iterator[None]:
    """Let long work within this context be stopped: `check` is called again and again, and raises when it should be."""
    before = _check_stop.set(check)
    try:
        yield
    finally:
        _check_stop.reset(before)


def check_stop() -> None:
    """Raise what the innermost `stoppable` raises, if the work should stop."""
    _check_stop.get()()


@contextmanager
def stage(what: str, total: int | None = None) -> Iterator[Advance]:
    """Say what this context does, as in "tokenising texts"; gives a function that takes how many more are done, and may stop it."""
    watcher = _watcher.get()

    def advance(count: int) -> None:
        check_stop()
        if watcher is not None:
            watcher.advance(count)

    if watcher is not None:
        watcher.begin(what, total)
    try:
        yield advance
    finally:
        if watcher is not None:
            watcher.end()
