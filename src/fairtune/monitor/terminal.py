"""Progress in the terminal: live bars on a terminal, plain lines elsewhere. Everything goes to standard error."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fairtune.core.console import Console
from fairtune.execution.executors.local import Message
from fairtune.execution.job import Job
from fairtune.execution.study_run import Watcher
from fairtune.report.scales import scale_of
from fairtune.study.plan import Plan

PLAIN_SECONDS = 30.0


def make_watcher(quiet: bool = False) -> Watcher:
    """The watcher that fits where standard error goes."""
    if quiet:
        return QuietWatcher()
    console = Console(stderr=True)
    return LiveWatcher(console) if console.is_terminal else PlainWatcher(console)


class QuietWatcher:
    """Shows nothing."""

    def begin(self, plan: Plan, waiting: Sequence[Job]) -> None: ...

    def hear(self, kind: str, job: Job, message: Message) -> None: ...

    def end(self) -> None: ...


class PlainWatcher:
    """A line when something ends, and now and then a sign of life."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._count = self._total = 0
        self._told = time.monotonic()

    def begin(self, plan: Plan, waiting: Sequence[Job]) -> None:
        self._total = len(plan.runs)
        self._count = self._total - len(waiting)
        self._say(f"study {plan.study.study}: {self._total} runs, {self._count} finished before")

    def hear(self, kind: str, job: Job, message: Message) -> None:
        if kind == "progress" and message.get("steps") and time.monotonic() - self._told > PLAIN_SECONDS:
            self._say(f"  {job.name}: step {message['step']} of {message['steps']}")
        elif kind in ("ended", "refused"):
            self._count += 1
            self._say(f"[{self._count}/{self._total}] {job.name}: {outcome_text(message)}")

    def end(self) -> None: ...

    def _say(self, text: str) -> None:
        self._told = time.monotonic()
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveWatcher:
    """One bar for the study, one for each run that is under way; a line stays for each run that ended."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=console,
        )
        self._runs: dict[str, TaskID] = {}
        self._ended = self._count = 0

    def begin(self, plan: Plan, waiting: Sequence[Job]) -> None:
        self._count = len(plan.runs)
        self._ended = self._count - len(waiting)
        steps = sum(job.plan["steps"] for job in waiting)
        self._study = self._progress.add_task(plan.study.study, total=steps, note=self._note())
        self._progress.start()

    def _note(self) -> str:
        return f"steps, {self._ended} of {self._count} runs"

    def hear(self, kind: str, job: Job, message: Message) -> None:
        if kind == "started":
            self._runs[job.name] = self._progress.add_task(job.name, total=job.plan["steps"], note="preparing")
        elif kind == "progress" and job.name in self._runs:
            self._move(job, message)
        elif kind in ("ended", "refused"):
            self._ended += 1
            if job.name in self._runs:
                self._finish(job)
            self._progress.console.print(f"{job.name}: {outcome_text(message)}", highlight=False, markup=False)

    def _move(self, job: Job, message: Message) -> None:
        bar = self._runs[job.name]
        before = self._progress.tasks[self._progress.task_ids.index(bar)].completed
        step = message.get("step", 0)
        self._progress.update(bar, completed=step, note=_note(message))
        self._progress.update(self._study, advance=step - before, note=self._note())

    def _finish(self, job: Job) -> None:
        bar = self._runs.pop(job.name)
        left = job.plan["steps"] - self._progress.tasks[self._progress.task_ids.index(bar)].completed
        self._progress.update(self._study, advance=left, note=self._note())
        self._progress.remove_task(bar)

    def end(self) -> None:
        self._progress.stop()


def _note(message: Message) -> str:
    phase = {"evaluate": "validating", "score": "testing", "done": "saving", "writing": "writing samples"}.get(
        message["phase"], "training"
    )
    if message.get("phase") == "preparing":
        return "preparing"
    best = (
        f", best {scale_of(message.get('metric', '')).value(message['best_score'])}"
        if message.get("best_score") is not None
        else ""
    )
    return f"{phase}, epoch {message.get('epoch', 0) + 1}{best}"


def outcome_text(message: Message) -> str:
    """How a run ended, in a few words."""
    result: dict[str, Any] = message.get("result", {})
    if result.get("status") != "finished":
        return f"failed: {result.get('reason') or message.get('reason')}"
    scale = scale_of(result["metric"])
    return (
        f"{scale.title} {scale.value(result['metrics']['test'][result['metric']])}, {result['seconds']['total']:.0f} s"
    )
