"""Progress: live on a terminal, plain lines elsewhere, colours only where they are wanted."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.hostile import ALL, STYLE, raw_codes

from fairtune.core.console import Console as PlainConsole
from fairtune.execution.job import make_job
from fairtune.monitor.terminal import LiveWatcher, PlainWatcher, QuietWatcher, make_watcher, outcome_text
from fairtune.study.loading import load_study
from fairtune.study.plan import Plan, make_plan


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


def play(watcher: Any, plan: Plan) -> None:
    """One run that finishes, one that fails."""
    first, second = (make_job(plan, run, Path("runs")) for run in plan.runs)
    result = {
        "status": "finished",
        "metric": "accuracy",
        "metrics": {"test": {"accuracy": 0.875}},
        "seconds": {"total": 12.0},
    }
    watcher.begin(plan, [first, second])
    watcher.hear("started", first, {"type": "started"})
    watcher.hear("progress", first, {"phase": "preparing"})
    for step in (1, 10):
        watcher.hear("progress", first, {"phase": "train", "step": step, "steps": 21, "epoch": 0, "best_score": None})
    watcher.hear("progress", first, {"phase": "evaluate", "step": 21, "steps": 21, "epoch": 1, "best_score": 0.8})
    watcher.hear("ended", first, {"type": "ended", "result": result})
    watcher.hear("started", second, {"type": "started"})
    watcher.hear(
        "ended", second, {"type": "ended", "result": {"status": "failed", "reason": "the loss is nan at step 3"}}
    )
    watcher.end()


def test_plain_lines_say_how_each_run_ended(plan: Plan) -> None:
    out = io.StringIO()
    play(PlainWatcher(Console(file=out, width=200)), plan)
    assert out.getvalue().splitlines() == [
        "study toy: 2 runs, 0 finished before",
        "[1/2] baseline/seed-0: accuracy 87.50, 12 s",
        "[2/2] baseline/seed-1: failed: the loss is nan at step 3",
    ]


def test_a_terminal_gets_bars_that_end_full(plan: Plan) -> None:
    out = io.StringIO()
    play(LiveWatcher(Console(file=out, width=160, force_terminal=True)), plan)
    shown = out.getvalue()
    total = sum(run.steps for run in plan.runs)
    assert f"{total}/{total}" in shown
    assert "2 of 2 runs" in shown
    assert "baseline/seed-0: accuracy 87.50" in shown
    assert "left" in shown


def test_no_color_is_respected(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    play(LiveWatcher(Console(file=out, width=160, force_terminal=True)), plan)
    assert "\x1b[3" not in out.getvalue(), "no colour codes"


def test_the_watcher_fits_where_it_is_shown() -> None:
    assert isinstance(make_watcher(quiet=True), QuietWatcher)
    assert isinstance(make_watcher(), PlainWatcher), "pytest's standard error is no terminal"


@pytest.mark.parametrize(("value", "told"), [(4.2713, "4.271"), (434.31, "434.3"), (float("inf"), "∞"), (None, "–")])
def test_a_perplexity_is_told_as_it_is(value: float | None, told: str) -> None:
    result = {
        "status": "finished",
        "metric": "perplexity",
        "metrics": {"test": {"perplexity": value}},
        "seconds": {"total": 12.0},
    }
    assert outcome_text({"result": result}) == f"perplexity {told}, 12 s"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_reason_commands_nothing(plan: Plan, terminal: bool) -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=4000, force_terminal=terminal)
    watcher: Any = LiveWatcher(console) if terminal else PlainWatcher(console)
    job = make_job(plan, plan.runs[0], Path("runs"))
    watcher.begin(plan, [job])
    watcher.hear("started", job, {"type": "started"})
    watcher.hear("ended", job, {"type": "ended", "result": {"status": "failed", "reason": ALL}})
    watcher.hear("refused", job, {"type": "refused", "reason": ALL})
    watcher.end()
    told = STYLE.sub("", out.getvalue())
    assert raw_codes(told) == []
    assert r"failed: \x1b[2J" in told
    assert "[/x] [red] [link=http://x]y[/link] :smile:" in told
