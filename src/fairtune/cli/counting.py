"""How many rows are done, while they are being done; on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from fairtune.core.console import Console

PLAIN_SECONDS = 30.0


@contextmanager
def counting() -> Iterator[Callable[[int], None]]:
    """Takes how many more rows are done: a live line on a terminal, now and then a plain one elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.completed:,.0f} rows"),
            TextColumn("{task.fields[rate]}", style="dim"),
        )
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as live:
            task = live.add_task("", total=None, rate="")
            count = Count(lambda done, rate: live.update(task, completed=done, rate=f"{rate:,.0f} a second"), 0.0)
            yield count.add
    else:
        yield Count(lambda done, rate: console.print(f"{done:,} rows, {rate:,.0f} a second"), PLAIN_SECONDS).add


class Count:
    """Rows, and what is told of them every so many seconds."""

    def __init__(self, tell: Callable[[int, float], None], seconds: float) -> None:
        self._tell, self._seconds, self._done = tell, seconds, 0
        self._began = self._told = time.monotonic()

    def add(self, rows: int) -> None:
        self._done += rows
        now = time.monotonic()
        if now - self._told >= self._seconds:
            self._told = now
            self._tell(self._done, self._done / max(1e-9, now - self._began))
