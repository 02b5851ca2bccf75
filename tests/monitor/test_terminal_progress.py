"""Progress: live on a terminal, plain lines elsewhere, colours only where they are wanted."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.hostile import ALL, STYLE, raw_codes

from fairtune.core.console import Console as PlainConsole
from fairtune.monitor import time_left
from fairtune.monitor.terminal import LiveMonitor, PlainMonitor, QuietMonitor, make_monitor, outcome_text
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study


@pytest.fixture
def plan(tiny_model: Path, tiny_task: Any) -> Plan:
    source = {
        "study": "toy",
        "task": tiny_task.as_study(),
        "model": str(tiny_model),
        "seeds": 2,
        "arms": {"baseline": {}},
    }
    return make_plan(load_study(source))


def play(monitor: Any, plan: Plan) -> None:
    """One run that finishes, one that fails."""
    first, second = names = [f"{run.arm}/seed-{run.seed}" for run in plan.runs]
    result = {
        "status": "finished",
        "metric": "accuracy",
        "metrics": {"test": {"accuracy": 0.875}},
        "seconds": {"total": 12.0},
    }
    monitor.begin(plan.study.study, 2, {name: run.steps for name, run in zip(names, plan.runs, strict=True)})
    monitor.update(first, "started", {})
    monitor.update(first, "progress", {"phase": "preparing"})
    for step in (1, 10):
        monitor.update(first, "progress", {"phase": "train", "step": step, "steps": 21, "epoch": 0, "best_score": None})
    monitor.update(first, "progress", {"phase": "evaluate", "step": 21, "steps": 21, "epoch": 1, "best_score": 0.8})
    monitor.update(first, "ended", {"result": result})
    monitor.update(second, "started", {})
    monitor.update(second, "ended", {"result": {"status": "failed", "reason": "the loss is nan at step 3"}})
    monitor.end()


def test_plain_lines_say_how_each_run_ended(plan: Plan) -> None:
    out = io.StringIO()
    play(PlainMonitor(Console(file=out, width=200)), plan)
    assert out.getvalue().splitlines() == [
        "study toy: 2 runs, 0 finished before; starting workers",
        "[1/2] baseline/seed-0: accuracy 87.50, 12 s",
        "[2/2] baseline/seed-1: failed: the loss is nan at step 3",
    ]


def test_runs_side_by_side_are_all_shown(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = [f"{run.arm}/seed-{run.seed}" for run in plan.runs]

    def both(monitor: Any) -> str:
        monitor.begin("toy", 2, {first: 21, second: 21})
        for step in (1, 2):
            for run in (first, second):
                monitor.update(
                    run, "started" if step == 1 else "progress", {"phase": "train", "step": step, "steps": 21}
                )
        monitor.end()
        return out.getvalue()

    monkeypatch.setattr("fairtune.monitor.terminal.PLAIN_SECONDS", -1.0)
    out = io.StringIO()
    assert both(PlainMonitor(Console(file=out, width=200))).splitlines()[-1] == (
        "  baseline/seed-0: step 2 of 21; baseline/seed-1: step 2 of 21"
    )
    out = io.StringIO()
    shown = both(LiveMonitor(Console(file=out, width=160, force_terminal=True)))
    assert shown.rindex(first) < shown.rindex(second)
    assert "4/42" in shown, "the study's bar counts the steps of both"


def test_a_terminal_gets_bars_that_end_full(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_left, "ENOUGH_SECONDS", 0.0)
    out = io.StringIO()
    play(LiveMonitor(Console(file=out, width=160, force_terminal=True)), plan)
    shown = out.getvalue()
    total = sum(run.steps for run in plan.runs)
    assert f"{total}/{total}" in shown
    assert "2 of 2 runs" in shown
    assert "baseline/seed-0: accuracy 87.50" in shown
    assert "starting workers" in shown
    assert "about 10 s left" in shown


def test_no_color_is_respected(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    play(LiveMonitor(Console(file=out, width=160, force_terminal=True)), plan)
    assert "\x1b[3" not in out.getvalue(), "no colour codes"


def test_the_monitor_fits_where_it_is_shown() -> None:
    assert isinstance(make_monitor(quiet=True), QuietMonitor)
    assert isinstance(make_monitor(), PlainMonitor), "pytest's standard error is no terminal"


@pytest.mark.parametrize(
    ("value", "expected"), [(4.2713, "4.271"), (434.31, "434.3"), (float("inf"), "∞"), (None, "–")]
)
def test_a_perplexity_is_reported_as_it_is(value: float | None, expected: str) -> None:
    result = {
        "status": "finished",
        "metric": "perplexity",
        "metrics": {"test": {"perplexity": value}},
        "seconds": {"total": 12.0},
    }
    assert outcome_text({"result": result}) == f"perplexity {expected}, 12 s"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_reason_commands_nothing(plan: Plan, terminal: bool) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=4000, force_terminal=terminal)
    monitor: Any = LiveMonitor(console) if terminal else PlainMonitor(console)
    run = "baseline/seed-0"
    monitor.begin("toy", 2, {run: plan.runs[0].steps})
    monitor.update(run, "started", {})
    monitor.update(run, "ended", {"result": {"status": "failed", "reason": ALL}})
    monitor.update(run, "refused", {"reason": ALL})
    monitor.end()
    output = STYLE.sub("", out.getvalue())
    assert raw_codes(output) == []
    assert r"failed: \x1b[2J" in output
    assert "[/x] [red] [link=http://x]y[/link] :smile:" in output


@pytest.mark.parametrize("live", [False, True])
def test_notes_are_shown(live: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=live, color_system=None)
    monitor = LiveMonitor(console) if live else PlainMonitor(console)
    monitor.begin("toy", 1, {"a/seed-0": 20})
    monitor.update("a/seed-0", "note", {"text": "lost on Slurm [sent again]"})
    monitor.end()
    assert "lost on Slurm [sent again]" in out.getvalue()
