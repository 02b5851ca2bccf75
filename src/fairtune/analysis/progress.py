"""How soon a run got somewhere: steps to a target loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any


def steps_to_loss(events: Iterable[dict[str, Any]], target: float) -> int | None:
    """The step of the first validation whose loss is at or below the target; None if there was none."""
    for event in events:
        if event.get("event") == "evaluation" and event.get("split") == "validation":
            loss = event.get("loss")  # null where it was not a finite number
            if loss is not None and loss <= target:
                return int(event["step"])
    return None


def steps_text(steps: Sequence[int | None]) -> str | None:
    """Steps of all seeds in a cell: `1,200 (3 of 3)`.

    The median over all seeds, those that never reached the target counting as later than any that did; so it is
    `not reached (1 of 3)` where most did not.
    """
    if not steps:
        return None
    reached = f"({sum(step is not None for step in steps)} of {len(steps)})"
    middle = median(float("inf") if step is None else float(step) for step in steps)
    return f"not reached {reached}" if middle == float("inf") else f"{middle:,.0f} {reached}"
