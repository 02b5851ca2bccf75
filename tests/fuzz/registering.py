"""The table of targets: what is damaged, and how often in the test suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.outcomes import Outcome

Run = Callable[[int, Path], Outcome | None]


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Args:
        run: takes a seed and an empty folder, damages and reads; None is well, an outcome is a finding.
        seeds: how many the test suite tries, from 0.
    """

    name: str
    run: Run
    seeds: int


TARGETS: dict[str, Target] = {}


def target(name: str, seeds: int) -> Callable[[Run], Run]:
    """Put a function into the table."""

    def add(run: Run) -> Run:
        assert name not in TARGETS, f"two targets are called {name}"
        TARGETS[name] = Target(name, run, seeds)
        return run

    return add
