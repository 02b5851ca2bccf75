"""Verdicts so far: what they rest on, how often they are worked out, and that looking at them is never taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, make_study

from fairtune.monitor.judgement import Judge, Judgement, judge, peeking_text, whole_seeds

ONE = (("baseline", 0, "finished"),)
TWO = (*ONE, ("baseline", 1, "finished"))


class Counting:
    """Counts how often something is judged."""

    def __init__(self) -> None:
        self.keys: list[object] = []
        self.now = 0.0

    def __call__(self, _: Path, __: str, key: object) -> Judgement:
        self.keys.append(key)
        return Judgement(key)  # type: ignore[arg-type]

    def clock(self) -> float:
        return self.now


def test_the_same_runs_are_judged_once() -> None:
    counting = Counting()
    asked = Judge(Path("runs"), threaded=False, judge=counting, clock=counting.clock)
    for _ in range(3):
        assert asked.latest("x", ONE, running=True) == Judgement(ONE)
    assert counting.keys == [ONE]
    assert asked.latest("x", (), running=True) is None


def test_while_runs_are_under_way_verdicts_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, spent = Counting(), [0.0]
    monkeypatch.setattr("fairtune.monitor.judgement.time.thread_time", lambda: spent.append(spent[-1] + 1) or spent[-1])
    monkeypatch.setattr("fairtune.monitor.judgement._has_idle_core", lambda: False)
    asked = Judge(Path("runs"), threaded=False, judge=counting, clock=counting.clock)
    asked.latest("x", ONE, running=True)
    counting.now = 199.0
    assert asked.latest("x", TWO, running=True) == Judgement(ONE), (
        "a second of work is worth two hundred seconds of waiting"
    )
    counting.now = 201.0
    assert asked.latest("x", TWO, running=True) == Judgement(TWO)
    assert asked.latest("x", ONE, running=False) == Judgement(ONE), "nobody waits once all runs have ended"


def test_a_thread_answers_with_what_is_known() -> None:
    counting = Counting()
    asked = Judge(Path("runs"), judge=counting)
    asked.latest("x", ONE, running=True)
    assert asked.wait(20)
    assert asked.latest("x", ONE, running=True) == Judgement(ONE)


def test_figures_are_those_of_the_report(tmp_path: Path) -> None:
    made = make_study(tmp_path / "runs", {"baseline": ArmSpec([336, 338, 334]), "other": ArmSpec([320, 321, None])})
    results = made.results()
    found = judge(tmp_path / "runs", STUDY, ONE)
    summary, compared = results.summary("other"), results.comparison("other")
    assert compared is not None
    assert (found.arms["other"].counted, found.arms["other"].mean) == (2, summary.mean)
    assert (found.arms["other"].low, found.arms["other"].high) == (summary.low, summary.high)
    assert found.arms["other"].difference == compared.difference
    assert (found.arms["other"].difference_low, found.arms["other"].difference_high) == compared.family
    assert found.opening == results.verdict().opening
    assert found.counted == 5


def test_what_cannot_be_judged_is_told(tmp_path: Path) -> None:
    assert "no study 'gone'" in judge(tmp_path, "gone", ONE).problem


def test_seeds_count_when_every_arm_has_ended_them() -> None:
    states = {("a", 0): "finished", ("b", 0): "failed", ("a", 1): "finished", ("b", 1): "running", ("a", 2): "waiting"}
    assert whole_seeds(states) == (1, 3)
    assert peeking_text(1, 3) == "peeking: 1 of 3 seeds"
