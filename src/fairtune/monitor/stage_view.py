"""What a command is doing before and between its runs, on standard error: a bar on a terminal, a line for each stage elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.errors import LiveError
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from fairtune.core.console import Console
from fairtune.core.stages import StageWatcher, watched

PLAIN_SECONDS = 30.0
"""How often plain lines say how far a long stage is."""


@contextmanager
def show_stages(quiet: bool = False, lines: bool = True) -> Iterator[None]:
    """Show every stage meanwhile, in the way that fits where standard error goes.

    Args:
        quiet: show nothing.
        lines: also where it is no terminal.
    """
    console = Console(stderr=True)
    if quiet or not (lines or console.is_terminal):
        yield
        return
    view: StageWatcher = StageBars(console) if console.is_terminal else StageLines(console)
    with watched(view):
        yield


class StageLines:
    """A line when a stage begins, the same one once, and now and then how far a long one is."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._open: list[tuple[str, int | None]] = []
        self._done: list[int] = []
        self._said: set[str] = set()
        self._said_at = time.monotonic()

    def begin(self, what: str, total: int | None) -> None:
        self._open.append((what, total))
        self._done.append(0)
        line = what if total is None else f"{what} ({total:,})"
        if line not in self._said:
            self._said.add(line)
            self._print(line)

    def advance(self, count: int) -> None:
        self._done[-1] += count
        if time.monotonic() - self._said_at > PLAIN_SECONDS:
            (what, total), done = self._open[-1], self._done[-1]
            self._print(f"{what}: {done:,}" + ("" if total is None else f" of {total:,}"))

    def end(self) -> None:
        self._open.pop()
        self._done.pop()

    def _print(self, text: str) -> None:
        self._said_at = time.monotonic()
        self._console.print(f"fairtune: {text}", soft_wrap=True)


class StageBars:
    """One line for each stage that is under way, gone when it is over; with a bar where the end is known."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: list[TaskID | None] = []
        self._progress: Progress | None = None

    def begin(self, what: str, total: int | None) -> None:
        if self._progress is None:
            self._progress = _progress(self._console)
            with suppress(LiveError):  # another bar is being drawn, which says enough
                self._progress.start()
        self._bars.append(self._progress.add_task(what, total=total))

    def advance(self, count: int) -> None:
        bar = self._bars[-1]
        if self._progress is not None and bar is not None:
            self._progress.advance(bar, count)

    def end(self) -> None:
        bar = self._bars.pop()
        if self._progress is None or bar is None:
            return
        self._progress.remove_task(bar)
        if not self._bars:
            self._progress.stop()
            self._progress = None


class _KnownBar(BarColumn):
    """A bar, where the end is known."""

    def render(self, task: Task) -> Any:
        return "" if task.total is None else super().render(task)


class _Count(MofNCompleteColumn):
    """How many are done, where they are counted."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return super().render(task)


def _progress(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        _KnownBar(bar_width=24),
        _Count(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
