"""Two things that can be stepped, in turns: ABBA blocks in one process, and their ratio with an interval over blocks."""

from __future__ import annotations

import sys
from typing import Any, Protocol

RESAMPLES = 2000


class Stepped(Protocol):
    """Something to be timed."""

    def step(self) -> tuple[float, float]:
        """Seconds of a whole step, and of its forward and backward pass."""


Steps = Any  # an array of seconds, [block, A or B, first or second step]


def compare(a: Stepped, b: Stepped, blocks: int, title: str) -> Steps:
    """Seconds of every step, with a last axis for the whole step and its forward and backward pass."""
    import numpy as np

    for _ in range(3):
        a.step(), b.step()
    seconds = []
    for block in range(blocks):
        times: dict[str, list[tuple[float, float]]] = {"a": [], "b": []}
        for turn in "abba" if block % 2 == 0 else "baab":
            times[turn].append((a if turn == "a" else b).step())
        seconds.append([times["a"], times["b"]])
        print(f"\r{title}: block {block + 1} of {blocks}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.array(seconds)


def by_block(seconds: Steps) -> float:
    """The median over blocks of A's time over B's."""
    import numpy as np

    total = seconds.sum(axis=2)
    return float(np.median(total[:, 0] / total[:, 1]))


def by_quickest(seconds: Steps) -> float:
    """A's lower quartile of step times over B's."""
    import numpy as np

    quartile = np.quantile(seconds, 0.25, axis=(0, 2))
    return float(quartile[0] / quartile[1])


def show(title: str, seconds: Steps, bound: float | None) -> None:
    """Print both ratios with their bootstrap intervals over blocks, and the share of the bound's saving they reach."""
    import numpy as np

    draws = np.random.default_rng(0).integers(0, len(seconds), (RESAMPLES, len(seconds)))
    for name, ratio in (("median of blocks", by_block), ("quickest quarter", by_quickest)):
        middle = ratio(seconds)
        low, high = np.quantile([ratio(seconds[draw]) for draw in draws], (0.025, 0.975))
        line = f"  {title:<21} {name}: {middle:.3f}x ({low:.3f} to {high:.3f})"
        if bound is not None:
            line += f", {100 * (1 - 1 / middle) / (1 - 1 / bound):.0f} % of the saving that the bound allows"
        print(line, flush=True)
