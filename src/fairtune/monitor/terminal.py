"""Progress in the terminal: live bars on a terminal, plain lines elsewhere. Everything goes to standard error."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from fairtune.analysis.scales import scale_of
from fairtune.core.console import Console
from fairtune.monitor.time_left import TimeLeft

PLAIN_SECONDS = 30.0
"""How often plain lines give a sign of life."""
STAGE = "stage"
"""The phase of a run that tells what it does in words."""
STOPPING = (
    "fairtune: stopping: runs under way are saving their state. Press Ctrl-C again to end them at once; they then go on from their "
    "last checkpoint."
)
LEARNER_PHASES = {"preparing": "preparing", "features": "encoding", "fitting": "fitting"}
PHASES = {"evaluate": "validating", "score": "testing", "done": "saving", "writing": "writing samples"}
"""What a run is doing besides training, in words."""


def make_monitor(quiet: bool = False) -> QuietMonitor | PlainMonitor | LiveMonitor:
    """The monitor that fits where standard error goes."""
    if quiet:
        return QuietMonitor()
    console = Console(stderr=True)
    return LiveMonitor(console) if console.is_terminal else PlainMonitor(console)


class QuietMonitor:
    """Shows nothing."""

    def begin(self, study: str, runs: int, waiting: Mapping[str, int]) -> None: ...

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None: ...

    def stopping(self) -> None: ...

    def end(self) -> None: ...


class PlainMonitor:
    """A line when something ends, and now and then a sign of life of every run that is under way."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._count = self._total = 0
        self._steps: dict[str, str] = {}
        self._left = TimeLeft({})
        self._printed_at = time.monotonic()

    def begin(self, study: str, runs: int, waiting: Mapping[str, int]) -> None:
        self._total, self._count, self._left = runs, runs - len(waiting), TimeLeft(waiting)
        starting = "; starting workers" if waiting else ""
        self._print(f"study {study}: {self._total} runs, {self._count} finished before{starting}")

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        if event == "progress" and (values.get("steps") or values.get("phase") == STAGE):
            if values.get("phase") == STAGE:
                self._steps[run] = f"{run}: {_run_note(values)}"
            else:
                self._left.moved(run, values["step"])
                self._steps[run] = f"{run}: step {values['step']} of {values['steps']}"
            if time.monotonic() - self._printed_at > PLAIN_SECONDS:
                self._print(f"  {'; '.join(self._steps.values())}{self._left_text()}")
        elif event == "note":
            self._print(f"  {values['text']}")
        elif event in ("ended", "refused"):
            self._steps.pop(run, None)
            self._left.ended(run)
            self._count += 1
            self._print(f"[{self._count}/{self._total}] {run}: {outcome_text(values)}{self._left_text()}")

    def stopping(self) -> None:
        self._print(STOPPING)

    def end(self) -> None: ...

    def _left_text(self) -> str:
        return f" ({self._left.text})" if self._left.text else ""

    def _print(self, text: str) -> None:
        self._printed_at = time.monotonic()
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveMonitor:
    """One bar for the study, one for each run that is under way; a line stays for each run that ended."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
        )
        self._left = TimeLeft({})
        self._steps: Mapping[str, int] = {}
        self._bars: dict[str, TaskID] = {}
        self._ended = self._count = 0

    def begin(self, study: str, runs: int, waiting: Mapping[str, int]) -> None:
        self._count, self._ended, self._steps = runs, runs - len(waiting), waiting
        self._left = TimeLeft(waiting)
        note = f"{self._study_note()}; starting workers" if waiting else self._study_note()
        self._study = self._progress.add_task(study, total=sum(waiting.values()), note=note, left="")
        self._progress.start()

    def update(self, run: str, event: str, values: Mapping[str, Any]) -> None:
        if event == "started":
            self._bars[run] = self._progress.add_task(run, total=self._steps[run] or None, note="preparing", left="")
            self._progress.update(self._study, note=self._study_note())
        elif event == "progress" and run in self._bars:
            self._move(run, values)
        elif event == "note":
            self._progress.console.print(str(values["text"]), highlight=False, markup=False, soft_wrap=True)
        elif event in ("ended", "refused"):
            self._ended += 1
            if run in self._bars:
                self._finish(run)
            self._progress.console.print(f"{run}: {outcome_text(values)}", highlight=False, markup=False)

    def stopping(self) -> None:
        self._progress.console.print(STOPPING, highlight=False, markup=False, soft_wrap=True)

    def end(self) -> None:
        self._progress.stop()

    def _move(self, run: str, values: Mapping[str, Any]) -> None:
        if values.get("phase") == STAGE:
            self._progress.update(self._bars[run], note=_run_note(values))
            return
        step, before = values.get("step", 0), self._completed(run)
        if values.get("steps"):
            self._left.moved(run, step)
        self._progress.update(self._bars[run], completed=step, note=_run_note(values))
        self._progress.update(self._study, advance=step - before, note=self._study_note(), left=self._left.text)

    def _finish(self, run: str) -> None:
        left = self._steps[run] - self._completed(run)
        self._left.ended(run)
        self._progress.update(self._study, advance=left, note=self._study_note(), left=self._left.text)
        self._progress.remove_task(self._bars.pop(run))

    def _completed(self, run: str) -> float:
        return self._progress.tasks[self._progress.task_ids.index(self._bars[run])].completed

    def _study_note(self) -> str:
        return f"steps, {self._ended} of {self._count} runs"


def _run_note(values: Mapping[str, Any]) -> str:
    """What a run is doing, for its bar."""
    phase = values["phase"]
    if phase == STAGE:
        of = "" if values.get("of") is None else f" of {values['of']:,}"
        return f"{values['what']}, {values['done']:,}{of}" if values.get("done") else str(values["what"])
    if phase in LEARNER_PHASES:
        return (
            f"{LEARNER_PHASES[phase]} {values['done']:,} of {values['of']:,}"
            if "of" in values
            else LEARNER_PHASES[phase]
        )
    best, metric = values.get("best_score"), values.get("metric", "")
    so_far = "" if best is None else f", best {scale_of(metric).value(best)}"
    return f"{PHASES.get(phase, 'training')}, epoch {values.get('epoch', 0) + 1}{so_far}"


def outcome_text(values: Mapping[str, Any]) -> str:
    """How a run ended, in a few words."""
    result: Mapping[str, Any] = values.get("result", {})
    if result.get("status") != "finished":
        return f"failed: {result.get('reason') or values.get('reason')}"
    scale, metrics = scale_of(result["metric"]), result["metrics"]
    where, scores = ("", metrics["test"]) if "test" in metrics else ("validation ", metrics["validation"])
    return f"{where}{scale.title} {scale.value(scores[result['metric']])}, {result['seconds']['total']:.0f} s"
