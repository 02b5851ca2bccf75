"""Events as they come: each line once, whole, whatever becomes of the file; and how far a run is by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtune.ledger.events import SAMPLE, EventLog, EventTail, counted_events
from fairtune.ledger.scan import LATEST, POINTS, RunProgress


def write(path: Path, *units: int) -> None:
    log = EventLog(path)
    for unit in units:
        log.write("step", unit)
    log.close()


def read(tail: EventTail) -> list[int]:
    return [event["unit"] for event in tail.read()]


def test_each_line_is_read_once_and_a_torn_one_waits_for_its_rest(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    tail = EventTail(file)
    assert read(tail) == []
    write(file, 1, 2)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(1, len(whole) + 1):
        file.write_bytes(whole[:end])
        assert read(tail) == ([1] if end == first else [2] if end == len(whole) else [])
        assert not tail.restarted
    write(file, 3)
    assert read(tail) == [3]
    assert read(tail) == []


@pytest.mark.parametrize("how", ["shorter", "replaced", "gone"])
def test_a_file_that_is_another_one_is_read_from_its_start(tmp_path: Path, how: str) -> None:
    file, other = tmp_path / "events.jsonl", tmp_path / "other"
    write(file, 1, 2, 3)
    write(other, 7, 8, 9, 10)
    tail = EventTail(file)
    assert read(tail) == [1, 2, 3]
    if how == "replaced":
        other.replace(file)
    else:
        file.unlink()
        if how == "shorter":
            write(file, 7)
    assert read(tail)[:1] == ([] if how == "gone" else [7])
    assert tail.restarted


# -- how far a run is --------------------------------------------------------------------------------------------------


def step(number: int, **values: Any) -> dict[str, Any]:
    about = {"event": "step", "unit": number - 1, "time": 1000.0 + number, "step": number}
    return {**about, "epoch": number // 10, "loss": float(number), "seconds": 0.5, **values}


def score(number: int, **metrics: float) -> dict[str, Any]:
    about = {"event": "evaluation", "unit": number, "split": "validation", "step": number, "time": 1.0}
    return {**about, "seconds": 1, **metrics}


def test_a_run_is_as_far_as_its_events_say() -> None:
    run = RunProgress(100)
    assert (run.step, run.loss, run.speed, run.losses, run.scores, run.failed) == (0, None, None, (), {}, None)
    run.add([{"event": "resumed", "unit": 0, "step": 0, "time": 990.0}])
    run.add(step(number) for number in range(1, 31))
    run.add([score(30, accuracy=0.5, loss=0.7), {**score(30, accuracy=0.9), "split": "test"}])
    run.add({"event": "warning", "unit": 30, "time": 1.0, "text": f"w{n}"} for n in range(9))
    run.add([{"event": SAMPLE, "unit": 1, "time": 1e9, "busy": 0.5}])
    assert (run.step, run.epoch, run.began, run.seen) == (30, 3, 990.0, 1.0)
    assert run.loss == sum(range(30 - LATEST + 1, 31)) / LATEST
    assert run.speed == pytest.approx(2.0), "by the seconds of steps, whatever clocks and evaluations do"
    assert run.losses[:2] == ((2, 1.5), (4, 3.5)), "fifty points of a hundred steps are two steps each"
    assert run.scores == {"accuracy": ((30, 0.5),), "loss": ((30, 0.7),)}
    assert run.warnings == ["w4", "w5", "w6", "w7", "w8"]
    run.add([{"event": "failed", "unit": 0, "time": 1.0, "reason": "out of memory"}])
    assert run.failed == "out of memory"


@pytest.mark.parametrize("back", [0, 7, 18, 35])
def test_what_was_lost_is_taken_back_as_counted_events_do(tmp_path: Path, back: int) -> None:
    file = tmp_path / "events.jsonl"
    log = EventLog(file)
    log.write("resumed", 0, step=0)
    for number in range(1, 37):
        log.write("step", number - 1, step=number, loss=1 / number)
        if number % 9 == 0:
            log.write("evaluation", number, split="validation", step=number, accuracy=number / 100)
    log.write("failed", 0, reason="killed")
    log.write("resumed", back, step=back)
    for number in range(back + 1, back + 3):
        log.write("step", number - 1, step=number, loss=2 / number)
    log.write("evaluation", back + 2, split="validation", step=back + 2, accuracy=0.5)
    log.close()
    live, again = RunProgress(40), RunProgress(40)
    live.add(EventTail(file).read())
    again.add(counted_events(file))
    for name in ("losses", "step", "failed"):
        assert getattr(live, name) == getattr(again, name), name
    assert live.step == back + 2
    assert live.failed is None, "it goes on"
    assert live.scores["accuracy"][-1] == (back + 2, 0.5)
    assert [at for at, _ in live.scores["accuracy"][:-1]] == [at for at in (9, 18, 27) if at <= back]


@pytest.mark.parametrize("steps", [6000, 3000, None])
def test_a_curve_is_short_however_long_a_run_is(steps: int | None) -> None:
    run = RunProgress(steps)
    for number in range(1, 6001):
        run.add([step(number), score(number, accuracy=number / 1e5)])
    assert len(run.losses) == POINTS
    assert len(run.scores["accuracy"]) <= 2 * POINTS + 1
    assert run.scores["accuracy"][-1] == (6000, 0.06)
