"""Events as they come: each line once, whole, whatever becomes of the file; and how far a run is by them."""

from __future__ import annotations

import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from fairtune.ledger import event_tail
from fairtune.ledger.event_tail import EventTail
from fairtune.ledger.events import EventLog, all_events, counted_events, parse_lines
from fairtune.ledger.run_progress import LATEST, MOST_RECORDS, POINTS, RunProgress


def write(path: Path, *units: int) -> None:
    log = EventLog(path)
    for unit in units:
        log.write("step", unit)
    log.close()


def units(events: list[dict[str, Any]]) -> list[int]:
    return [event["unit"] for event in events]


def test_each_line_is_read_once_and_a_torn_one_waits_for_its_rest(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    tail = EventTail(file)
    assert tail.read() == []
    write(file, 1, 2)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(1, len(whole) + 1):
        file.write_bytes(whole[:end])
        found = units(tail.read())
        # a last line that lacks its end of line alone is whole
        assert found == ([1] if end == first - 1 else [2] if end == len(whole) - 1 else [])
        assert not tail.restarted
    write(file, 3)
    assert units(tail.read()) == [3]
    assert tail.read() == []


@pytest.mark.parametrize("how", ["shorter", "replaced", "rewritten", "gone", "folder"])
def test_a_file_that_is_another_one_is_read_from_its_start(tmp_path: Path, how: str) -> None:
    file, other = tmp_path / "events.jsonl", tmp_path / "other"
    write(file, 1, 2, 3)
    tail = EventTail(file)
    assert units(tail.read()) == [1, 2, 3]
    write(other, *({"shorter": [7], "replaced": [7, 8, 9]}.get(how, [7, 8, 9, 10])))
    if how == "replaced":
        other.replace(file)
    elif how in ("gone", "folder"):
        file.unlink()
        if how == "folder":
            file.mkdir()
        assert tail.read() == []
        assert tail.restarted == (how == "gone")
        if how == "folder":
            file.rmdir()
        write(file, 7)
        assert units(tail.read()) == [7]
        return
    else:
        file.write_bytes(other.read_bytes())
    assert units(tail.read())[0] == 7
    assert tail.restarted
    write(file, 20)
    assert units(tail.read()) == [20]
    assert not tail.restarted


def test_a_large_file_is_read_in_parts_and_a_line_without_end_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_tail, "MOST", 300)
    file = tmp_path / "events.jsonl"
    write(file, *range(20))
    file.write_bytes(file.read_bytes() + b"x" * 1000 + b"\n")
    write(file, 20, 21)
    tail, found = EventTail(file), list[int]()
    while True:
        found += units(tail.read())
        if not tail.behind:
            break
    assert found == list(range(22)) == units(list(all_events(file)))


def test_a_pipe_in_the_place_of_events_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.jsonl")
    assert EventTail(tmp_path / "events.jsonl").read() == []


def test_lines_made_by_hand_cost_themselves_alone() -> None:
    def line(text: str) -> bytes:
        return f'{text[:-1]}, "crc32": "{zlib.crc32(text.encode()):08x}"}}\n'.encode()

    good = line('{"event": "step", "unit": 1}')
    assert units(parse_lines(good + line('{"broken": }') + line("3, 4}") + good)) == [1, 1]


# -- how far a run is --------------------------------------------------------------------------------------------------


def step(number: int, unit: int | None = None, **values: Any) -> dict[str, Any]:
    about = {"event": "step", "unit": number - 1 if unit is None else unit, "time": 1000.0 + number, "step": number}
    return {**about, "epoch": number // 10, "loss": float(number), "seconds": 0.5, **values}


def score(number: int, unit: int, **metrics: float) -> dict[str, Any]:
    return {
        "event": "evaluation",
        "unit": unit,
        "split": "validation",
        "step": number,
        "time": 1.0,
        "seconds": 1,
        **metrics,
    }


def test_a_run_is_as_far_as_its_events_say() -> None:
    run = RunProgress(100)
    assert (run.step, run.loss, run.speed, run.losses, run.scores, run.failed) == (0, None, None, (), {}, None)
    run.add([{"event": "resumed", "unit": 0, "step": 0, "time": 990.0}])
    run.add(step(number) for number in range(1, 31))
    run.add([score(30, 30, accuracy=0.5, loss=0.7), {**score(30, 30, accuracy=0.9), "split": "test"}])
    run.add({"event": "warning", "unit": 30, "text": f"w{n}"} for n in range(9))
    run.add([{"event": "record", "unit": 30, "name": "bpsom", "step": 30}])
    assert (run.step, run.epoch, run.began, run.seen) == (30, 3, 990.0, 1.0)
    assert run.loss == sum(range(30 - LATEST + 1, 31)) / LATEST
    assert run.speed == pytest.approx(1.0)
    assert run.losses[:2] == ((2, 1.5), (4, 3.5)), "fifty points of a hundred steps are two steps each"
    assert run.scores == {"accuracy": ((30, 0.5),), "loss": ((30, 0.7),)}
    assert run.warnings == ["w4", "w5", "w6", "w7", "w8"]
    assert [record["name"] for record in run.records] == ["bpsom"]
    run.add([{"event": "failed", "unit": 0, "reason": "out of memory"}])
    assert run.failed == "out of memory"


@pytest.mark.parametrize("steps", [40, 400, None])
@pytest.mark.parametrize("back", [0, 7, 20, 35])
def test_what_was_lost_is_taken_back_as_counted_events_do(tmp_path: Path, steps: int | None, back: int) -> None:
    file = tmp_path / "events.jsonl"
    log = EventLog(file)
    log.write("resumed", 0, step=0)
    for number in range(1, 37):
        log.write("step", number - 1, step=number, loss=1 / number)
        if number % 9 == 0:
            log.write("evaluation", number, split="validation", step=number, accuracy=number / 100)
            log.write("record", number, name="x", step=number)
    log.write("failed", 0, reason="killed")
    log.write("resumed", back, step=back)
    for number in range(back + 1, back + 3):
        log.write("step", number - 1, step=number, loss=2 / number)
    log.close()
    tail, live, again = EventTail(file), RunProgress(steps), RunProgress(steps)
    live.add(tail.read())
    again.add(counted_events(file))
    assert [place for place, _ in live.losses] == [place for place, _ in again.losses]
    assert [loss for _, loss in live.losses] == pytest.approx([loss for _, loss in again.losses])
    assert (live.scores, live.step, live.loss, live.records) == (again.scores, again.step, again.loss, again.records)
    assert live.step == back + 2
    assert live.failed is None, "it goes on"


def test_speed_is_that_of_steps_whatever_clocks_and_evaluations_do() -> None:
    run, time = RunProgress(1000), 1000.0
    for number in range(1, 60):
        time += 0.25
        if number % 6 == 0:
            time += 30.0  # an evaluation
        if number == 45:
            time -= 7200.0  # a clock that is put right
        if number == 50:
            time += 1e6
        run.add([step(number, time=time)])
        assert number == 1 or run.speed == pytest.approx(4.0, rel=0.3)
    fast = RunProgress(10)
    fast.add(step(number, time=5.0, seconds=0.001) for number in range(1, 5))
    assert fast.speed == pytest.approx(1000.0), "faster than the clock's digits"


def test_memory_is_bounded_however_long_a_run_is() -> None:
    run = RunProgress(None)
    for number in range(1, 6001):
        run.add([step(number), score(number, number, accuracy=number / 1e5)])
        if number % 10 == 0:
            run.add([{"event": "record", "unit": number, "name": "x"}])
    assert len(run.losses) <= 2 * POINTS + 1
    assert len(run.scores["accuracy"]) <= 2 * POINTS + 2
    assert run.scores["accuracy"][-1] == (6000, 0.06)
    assert len(run.records) == MOST_RECORDS
    assert len(json.dumps(run.as_json())) < 5000
    assert sys.getsizeof(run._recent) < 10_000


def test_what_is_kept_of_a_run_that_ended_says_the_same() -> None:
    run = RunProgress(20)
    run.add(step(number) for number in range(1, 21))
    run.add([score(10, 10, accuracy=0.25), {"event": "warning", "unit": 1, "text": "w"}])
    again = RunProgress.from_json(json.loads(json.dumps(run.as_json())))
    for name in ("step", "epoch", "loss", "speed", "losses", "scores", "began", "seen", "warnings", "failed"):
        assert getattr(again, name) == getattr(run, name), name


@pytest.mark.parametrize("value", ["x", None, [], {}, True, float("nan"), 10**400, -1], ids=range(8))
def test_strange_values_are_passed_over(value: Any) -> None:
    run = RunProgress(10)
    for kind in ("step", "evaluation", "resumed", "epoch", "warning", "record", "failed", value):
        for name in ("unit", "time", "step", "epoch", "loss", "seconds", "accuracy", "text", "reason"):
            run.add([{**step(1), "event": kind, "split": "validation", name: value}])
    assert run.losses is not None
    assert json.dumps(run.as_json())
    assert run.speed is None or run.speed > 0
