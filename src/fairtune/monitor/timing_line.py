"""A timing experiment in the terminal: how long it has measured, and how precise it is so far. Goes to standard error."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.live import Live
from rich.text import Text

from fairtune.core.console import Console
from fairtune.monitor.terminal import PLAIN_SECONDS
from fairtune.settings.sections import Timing


def make_timing_monitor(timing: Timing, quiet: bool = False) -> TimingMonitor:
    """The monitor that fits where standard error goes."""
    return TimingMonitor(timing, None if quiet else Console(stderr=True))


class TimingMonitor:
    """One line that changes on a terminal, a line now and then elsewhere.

    Attributes:
        precision: as it was last worked out; None before that.
    """

    def __init__(self, timing: Timing, console: Console | None) -> None:
        self.precision: float | None = None
        self._timing, self._console, self._said = timing, console, time.monotonic()
        self._live: Live | None = None
        if console is not None and console.is_terminal:
            self._live = Live(Text("preparing the arms"), console=console, transient=True)
            self._live.start()
        elif console is not None:
            console.print("timing: preparing the arms", highlight=False)

    def show(self, record: Mapping[str, Any]) -> None:
        """A round was measured."""
        if self._live is not None:
            self._live.update(Text(self._text(record)))
        elif self._console is not None and time.monotonic() - self._said > PLAIN_SECONDS:
            self._said = time.monotonic()
            self._console.print(self._text(record), highlight=False)

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _text(self, record: Mapping[str, Any]) -> str:
        rounds = len(record["rounds"])
        state = f"round {rounds}" if rounds else "warming up"
        wanted, known = f"wanted {100 * self._timing.precision:g} %", ""
        if self.precision is not None:
            known = f", within ±{100 * self.precision:.1f} % ({wanted})"
        return f"timing: {state}, {record['seconds']:.0f} s of at most {60 * self._timing.minutes:.0f}{known}"
