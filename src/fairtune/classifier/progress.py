"""What a fit keeps while it runs, its events and its best weights, and how progress is shown: a bar, or lines in a log."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fairtune.core.console import Console
from fairtune.ledger.events import EventLog
from fairtune.settings.metrics import METRICS
from fairtune.training.checkpoints import RunStates, keep_only
from fairtune.training.loop import TrainingRun
from fairtune.training.objectives import Evaluation

MANY = 5_000
"""Texts whose prediction takes long enough for a bar."""
PLAIN_SECONDS = 30.0
"""Between two lines about rows that are done, where there is no terminal."""
UNCOUNTED = ("event", "unit", "split", "loss", "best", "seconds", "step", "epoch")


class EventList(EventLog):
    """The events of a fit, kept in memory: there is nothing to resume."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, unit: int, **values: Any) -> None:
        self.events.append({"event": event, "unit": unit, **values})

    def close(self) -> None: ...


class BestWeights(RunStates):
    """Keeps the best weights, and only those."""

    def save_best(self, run: TrainingRun, found: Evaluation) -> None:
        super().save_best(run, found)
        keep_only(self.folder.glob("best-*"), [self._best(run.progress.best_step)])


def history_of(events: list[dict[str, Any]], steps_per_epoch: int) -> list[dict[str, Any]]:
    """One row per evaluation, with the mean training loss since the one before; without validation, one row per epoch."""
    row_event = "evaluation" if any(event["event"] == "evaluation" for event in events) else "epoch"
    rows: list[dict[str, Any]] = []
    losses: list[float] = []
    for event in events:
        if event["event"] == "step":
            losses.append(event["loss"])
        if event["event"] != row_event:
            continue
        row = {"epoch": event["step"] / steps_per_epoch, "step": event["step"], "train_loss": float(np.mean(losses))}
        if row_event == "evaluation":
            row |= {"validation_loss": event["loss"], "best": event["best"]}
            row |= {name: value for name, value in event.items() if name not in UNCOUNTED}
        rows.append(row)
        losses = []
    return rows


class FitWatcher:
    """Shows nothing."""

    def begin(self, run: TrainingRun) -> None: ...

    def step(self, run: TrainingRun) -> None: ...

    def evaluated(self, run: TrainingRun, row: dict[str, Any]) -> None: ...

    def end(self) -> None: ...


class LineWatcher(FitWatcher):
    """One line per evaluation, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def evaluated(self, run: TrainingRun, row: dict[str, Any]) -> None:
        self._console.print(f"step {row['step']} of {run.total_steps}: {_evaluation_text(run, row)}", soft_wrap=True)


class BarWatcher(FitWatcher):
    """A bar of steps, with what the last evaluation found."""

    def __init__(self, console: Console) -> None:
        self._bar = _bar(console)

    def begin(self, run: TrainingRun) -> None:
        self._task = self._bar.add_task(
            "training", total=run.total_steps, note=f"epoch 1, {len(run.objective):,} examples"
        )
        self._bar.start()

    def step(self, run: TrainingRun) -> None:
        self._bar.update(self._task, completed=run.progress.step)

    def evaluated(self, run: TrainingRun, row: dict[str, Any]) -> None:
        self._bar.update(self._task, completed=run.progress.step, note=_evaluation_text(run, row))

    def end(self) -> None:
        self._bar.stop()


def make_fit_watcher(shown: bool) -> FitWatcher:
    """What suits the place that this runs in."""
    if not shown or _in_worker():
        return FitWatcher()
    console = Console(stderr=True)
    return BarWatcher(console) if console.is_terminal or _draws_notebooks(console) else LineWatcher(console)


@contextmanager
def prediction_progress(texts: int, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """Takes how many more texts are done; None where nothing is shown."""
    console = Console(stderr=True)
    if not shown or texts < MANY or _in_worker() or not console.is_terminal:
        yield None
        return
    with _bar(console) as bar:
        task = bar.add_task("predicting", total=texts, note="texts")
        yield lambda done: bar.advance(task, done)


def _bar(console: Console) -> Progress:
    columns = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn()]
    return Progress(
        *columns,
        TextColumn("{task.fields[note]}", style="dim", markup=False),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _evaluation_text(run: TrainingRun, row: dict[str, Any]) -> str:
    best = ", the best so far" if row["best"] else ""
    metric = METRICS[run.objective.metric]
    return f"epoch {row['epoch']:g}, validation {metric.title} {metric.factor * row[run.objective.metric]:.1f}{best}"


def _in_worker() -> bool:
    """Whether this is one of several processes that would draw over each other."""
    return multiprocessing.current_process().name != "MainProcess"


def _draws_notebooks(console: Console) -> bool:
    """rich draws in notebooks with ipywidgets; without, it would only complain."""
    import importlib.util

    return console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None


@contextmanager
def row_progress() -> Iterator[Callable[[int], None]]:
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
            count = RowCount(lambda done, rate: live.update(task, completed=done, rate=f"{rate:,.0f} per second"), 0.0)
            yield count.add
    else:
        yield RowCount(lambda done, rate: console.print(f"{done:,} rows, {rate:,.0f} per second"), PLAIN_SECONDS).add


class RowCount:
    """Counts rows, and reports them every so many seconds."""

    def __init__(self, tell: Callable[[int, float], None], seconds: float) -> None:
        self._tell, self._seconds, self._done = tell, seconds, 0
        self._began = self._last = time.monotonic()

    def add(self, rows: int) -> None:
        self._done += rows
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            self._tell(self._done, self._done / max(1e-9, now - self._began))
