"""How training went on the validation split: its lowest and its last loss, and how soon it reached a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.settings.metrics import METRICS, title_of


@dataclass(frozen=True)
class Target:
    """What the validation split is to reach.

    Args:
        metric: `loss` of language models, the study's metric of classifiers.
    """

    metric: str
    value: float

    @property
    def text(self) -> str:
        """In words: validation accuracy of 85 %."""
        return f"validation {title_of(self.metric)} of {self.figure}"

    @property
    def figure(self) -> str:
        return f"{100 * self.value:g} %" if METRICS[self.metric].shown == "percent" else f"{self.value:g}"

    @property
    def bound(self) -> str:
        """Which side of it counts as reached."""
        return "at or below" if METRICS[self.metric].lower_is_better else "at or above"

    def is_met(self, value: float | None) -> bool:
        """Whether a figure reaches it; null was not a finite number."""
        if value is None:
            return False
        return value <= self.value if METRICS[self.metric].lower_is_better else value >= self.value


def target_of(plan: Mapping[str, Any]) -> Target | None:
    """The target that a plan states; None where there is none."""
    loss, score = plan["compare"].get("target_loss"), plan["compare"].get("target")
    if loss is not None:
        return Target("loss", float(loss))
    return None if score is None else Target(str(plan["task"]["metric"]), float(score))


@dataclass(frozen=True)
class Reached:
    """When a run reached the target.

    Args:
        epochs: passes over the training split by then; None where no run of the arm finished one.
    """

    step: int
    epochs: float | None


def reached_by_seed(runs: Sequence[LedgerRun], target: Target) -> dict[int, Reached | None]:
    """The first validation of each run of an arm that met the target; None if none did."""
    passes = next((event for run in runs for event in run.events_of("epoch")), None)
    found: dict[int, Reached | None] = {}
    for run in runs:
        steps = (int(event["step"]) for event in _validations(run) if target.is_met(event.get(target.metric)))
        step = next(steps, None)
        epochs = step * passes["epoch"] / passes["step"] if step is not None and passes else None
        found[run.seed] = None if step is None else Reached(step, epochs)
    return found


def validation_losses(run: LedgerRun) -> tuple[float, float]:
    """The lowest validation loss of a run and its last one; what is fitted at once has one only."""
    events = _validations(run) or [(run.result.get("metrics") or {}).get("validation") or {}]
    found = [math.nan if (loss := event.get("loss")) is None else float(loss) for event in events]
    return min((loss for loss in found if not math.isnan(loss)), default=math.nan), found[-1]


def _validations(run: LedgerRun) -> list[dict[str, Any]]:
    return [event for event in run.events_of("evaluation") if event.get("split") == "validation"]


def reached_text(found: Iterable[float | None], places: int = 0) -> str | None:
    """Steps or epochs of all seeds in a cell: `1,200 (3 of 3, 1,000 to 1,400)`.

    The median over all seeds, those that never reached the target counting as later than any that did; so it is
    `not reached (1 of 3)` where most did not. The range is that of the seeds that did.
    """
    values = list(found)
    if not values:
        return None
    known = [value for value in values if value is not None]
    middle = median(math.inf if value is None else float(value) for value in values)
    count = f"{len(known)} of {len(values)}"
    if middle == math.inf:
        return f"not reached ({count})"
    ends = [f"{end:,.{places}f}" for end in (min(known), max(known))]
    span = f", {' to '.join(ends)}" if ends[0] != ends[1] else ""
    return f"{middle:,.{places}f} ({count}{span})"
