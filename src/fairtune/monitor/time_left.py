"""How long a study's runs will still take, from the steps that were made so far: rough, since arms and evaluations differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

ENOUGH_SECONDS = 5.0
"""Of steps, before anything is said."""


class TimeLeft:
    """Counts steps of runs that may go on side by side.

    Args:
        steps: of each run that is to be done.
    """

    def __init__(self, steps: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._steps, self._clock = dict(steps), clock
        self._at: dict[str, int] = {}
        self._began: float | None = None
        self._made = 0

    def moved(self, run: str, step: int) -> None:
        """A run is at a step; the first is where it began, or went on."""
        if self._began is None:
            self._began = self._clock()
        if run in self._at:
            self._made += max(0, step - self._at[run])
        self._at[run] = step

    def ended(self, run: str) -> None:
        """Nothing is left of a run."""
        self._steps.pop(run, None)
        self._at.pop(run, None)

    @property
    def seconds(self) -> float | None:
        """What is left; None where it cannot be said yet, or nothing is."""
        if self._began is None or not self._made:
            return None
        spent = self._clock() - self._began
        left = sum(steps - min(steps, self._at.get(run, 0)) for run, steps in self._steps.items())
        return spent / self._made * left if spent >= ENOUGH_SECONDS and left else None

    @property
    def text(self) -> str:
        """In words: `about 12 min left`; empty where it cannot be said."""
        seconds = self.seconds
        return "" if seconds is None else f"about {duration_text(seconds)} left"


def duration_text(seconds: float) -> str:
    """A rough duration: no more digits than an estimate has."""
    if seconds < 90:
        return f"{max(10, 10 * round(seconds / 10))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
