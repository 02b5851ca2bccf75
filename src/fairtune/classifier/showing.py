"""How far a fit or a prediction is: a bar in a terminal or notebook, a line an evaluation elsewhere, nothing in a worker."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fairtune.core.console import Console
from fairtune.settings.metrics import METRICS
from fairtune.training.loop import TrainingRun

MANY = 5_000
"""Texts whose prediction takes long enough for a bar."""


class Watcher:
    """Shows nothing."""

    def begin(self, run: TrainingRun) -> None: ...

    def step(self, run: TrainingRun) -> None: ...

    def evaluated(self, run: TrainingRun, row: dict[str, Any]) -> None: ...

    def end(self) -> None: ...


class Lines(Watcher):
    """A line an evaluation, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def evaluated(self, run: TrainingRun, row: dict[str, Any]) -> None:
        self._console.print(f"step {row['step']} of {run.total_steps}: {_told(run, row)}", soft_wrap=True)


class Bar(Watcher):
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
        self._bar.update(self._task, completed=run.progress.step, note=_told(run, row))

    def end(self) -> None:
        self._bar.stop()


def watcher(shown: bool) -> Watcher:
    """What suits the place that this runs in."""
    if not shown or _in_worker():
        return Watcher()
    console = Console(stderr=True)
    return Bar(console) if console.is_terminal or _draws_notebooks(console) else Lines(console)


@contextmanager
def predicting(texts: int, shown: bool) -> Iterator[Callable[[int], None] | None]:
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


def _told(run: TrainingRun, row: dict[str, Any]) -> str:
    best = ", the best so far" if row["best"] else ""
    title = METRICS[run.objective.metric].title
    return f"epoch {row['epoch']:g}, validation {title} {100 * row[run.objective.metric]:.1f}{best}"


def _in_worker() -> bool:
    """Whether this is one of several processes that would draw over each other."""
    return multiprocessing.current_process().name != "MainProcess"


def _draws_notebooks(console: Console) -> bool:
    """rich draws in notebooks with ipywidgets; without, it would only complain."""
    import importlib.util

    return console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
