"""What a fit keeps while it runs: its events in memory, and the best weights in a folder that goes when it ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtune.ledger.events import EventLog
from fairtune.training.checkpoints import RunStates, keep_only
from fairtune.training.objectives import Evaluation
from fairtune.training.progress import RunInProgress

UNCOUNTED = ("event", "unit", "split", "loss", "best", "seconds", "step", "epoch")


class Heard(EventLog):
    """The events of a fit, kept in memory: there is nothing to resume."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, unit: int, **values: Any) -> None:
        self.events.append({"event": event, "unit": unit, **values})

    def close(self) -> None: ...


class BestOnly(RunStates):
    """Keeps the best weights, and only those."""

    def save_best(self, run: RunInProgress, found: Evaluation) -> None:
        super().save_best(run, found)
        keep_only(self.folder.glob("best-*"), [self._best(run.progress.best_step)])


def history_of(events: list[dict[str, Any]], steps_per_epoch: int) -> list[dict[str, Any]]:
    """A row an evaluation, with the mean training loss since the one before; without validation, a row an epoch."""
    kind = "evaluation" if any(event["event"] == "evaluation" for event in events) else "epoch"
    rows: list[dict[str, Any]] = []
    losses: list[float] = []
    for event in events:
        if event["event"] == "step":
            losses.append(event["loss"])
        if event["event"] != kind:
            continue
        row = {"epoch": event["step"] / steps_per_epoch, "step": event["step"], "train_loss": float(np.mean(losses))}
        if kind == "evaluation":
            row |= {"validation_loss": event["loss"], "best": event["best"]}
            row |= {name: value for name, value in event.items() if name not in UNCOUNTED}
        rows.append(row)
        losses = []
    return rows
