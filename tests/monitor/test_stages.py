"""What a command does before its runs is shown as it does it: lines in a log, bars on a terminal, nothing where nobody watches."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.console import Console
from fairtune.core.stages import stage, watched
from fairtune.execution.executors.performer import StageReports
from fairtune.monitor import stage_view
from fairtune.monitor.stage_view import StageBars, StageLines, show_stages
from fairtune.monitor.terminal import LiveMonitor, PlainMonitor
from fairtune.monitor.time_left import TimeLeft, duration_text


def work() -> None:
    with stage("reading rows"):
        for _ in range(2):
            with stage("tokenising texts", 2000) as advance:
                advance(1000)
                advance(1000)


def test_without_a_watcher_nothing_happens() -> None:
    work()


def test_a_log_gets_each_stage_once() -> None:
    out = io.StringIO()
    with watched(StageLines(Console(file=out, width=200))):
        work()
    assert out.getvalue().splitlines() == ["fairtune: reading rows", "fairtune: tokenising texts (2,000)"]


def test_a_long_stage_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_view, "PLAIN_SECONDS", -1.0)
    out = io.StringIO()
    with watched(StageLines(Console(file=out, width=200))):
        work()
    assert "fairtune: tokenising texts: 1,000 of 2,000" in out.getvalue().splitlines()


def test_a_terminal_gets_bars_that_go_away() -> None:
    out = io.StringIO()
    with watched(StageBars(Console(file=out, width=120, force_terminal=True))):
        work()
    assert "tokenising texts" in out.getvalue()
    assert "0/2000" in out.getvalue(), "with a bar where the end is known"


def test_bars_beside_other_bars_do_no_harm() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    monitor = LiveMonitor(console)
    monitor.begin("toy", 1, {"a": 5})
    with watched(StageBars(console)):
        work()
    monitor.end()


def test_a_stage_ends_whatever_comes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with show_stages():
        with pytest.raises(ZeroDivisionError), stage("dividing"):
            _ = 1 / 0
        with stage("going on"):
            pass
    assert capsys.readouterr().err.splitlines() == ["fairtune: dividing", "fairtune: going on"]


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with show_stages(quiet=True):
        work()
    assert capsys.readouterr().err == ""


def test_a_worker_sends_its_stages_and_both_monitors_show_them() -> None:
    sent: list[dict[str, Any]] = []
    with watched(StageReports(lambda values: sent.append({"phase": "stage", **values}))):
        work()
    assert sent[0] == {"phase": "stage", "what": "reading rows", "done": 0, "of": None}
    assert {values["what"] for values in sent} == {"reading rows", "tokenising texts"}
    out = io.StringIO()
    live = LiveMonitor(Console(file=out, width=160, force_terminal=True))
    live.begin("toy", 1, {"a": 5})
    live.update("a", "started", {})
    live.update("a", "progress", {"phase": "train", "step": 3, "steps": 5})
    live.update("a", "progress", {"phase": "stage", "what": "tokenising texts", "done": 1000, "of": 2000})
    assert live._completed("a") == 3, "a stage is no step"
    live.end()
    assert "tokenising texts, 1,000 of 2,000" in out.getvalue()


def test_a_stop_is_acknowledged() -> None:
    for monitor_of, terminal in ((PlainMonitor, False), (LiveMonitor, True)):
        out = io.StringIO()
        monitor = monitor_of(Console(file=out, width=400, force_terminal=terminal))
        monitor.begin("toy", 1, {"a": 5})
        monitor.stopping()
        monitor.end()
        assert (
            "stopping: runs under way are saving their state. Press Ctrl-C again to end them at once" in out.getvalue()
        )


def test_time_left_follows_from_the_steps_that_were_made() -> None:
    now = 100.0
    left = TimeLeft({"a": 100, "b": 100, "simple": 0}, clock=lambda: now)
    assert left.text == ""
    left.moved("a", 40)  # it goes on where it was interrupted
    assert left.text == "", "nothing was made yet"
    now = 103.0
    left.moved("a", 50)
    assert left.text == "", "too little to go by"
    now = 110.0
    left.moved("a", 60)
    assert left.seconds == pytest.approx(10 / 20 * 140)
    assert left.text == "about 70 s left"
    left.ended("a")
    assert left.seconds == pytest.approx(10 / 20 * 100)
    left.ended("b")
    assert left.text == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2, "10 s"), (84, "80 s"), (95, "2 min"), (3000, "50 min"), (7200, "2.0 h"), (2e5, "2.3 days")],
)
def test_durations_have_no_more_digits_than_an_estimate(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_plain_lines_give_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtune.monitor.terminal.PLAIN_SECONDS", -1.0)
    monkeypatch.setattr("fairtune.monitor.time_left.ENOUGH_SECONDS", 0.0)
    out = io.StringIO()
    monitor = PlainMonitor(Console(file=out, width=200))
    monitor.begin("toy", 1, {"a": 50})
    monitor.update("a", "progress", {"phase": "train", "step": 1, "steps": 50})
    monitor.update("a", "progress", {"phase": "train", "step": 2, "steps": 50})
    assert out.getvalue().splitlines()[-1] == "  a: step 2 of 50 (about 10 s left)"


def test_reading_and_tokenising_say_so(tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    source = {"study": "s", "task": tiny_task.as_study(), "model": str(tiny_model), "arms": ["baseline"], "seeds": 1}
    out = io.StringIO()
    with watched(StageLines(Console(file=out, width=300))):
        make_plan(load_study({**source, "train": {"max_length": "auto"}}), force=True)
        said = out.getvalue()
        make_plan(load_study({**source, "train": {"max_length": "auto"}}), force=True)
    assert "fairtune: reading rows of train" in said
    assert "fairtune: counting tokens of texts (" in said
    assert out.getvalue() == said, "what is kept is not made again"
