"""Signs of workers: who reads them knows which still beat, whatever the clocks say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairtune.ledger.worker_signs import SignWatch, WorkerSign, read_signs, remove_sign, sign_file, write_sign

SIGN = WorkerSign("cuda-0", "cuda:0", "A GPU", "baseline/seed-1", "train", 3, 20, 7, 1e9, 0.5, 10, 100, 61.0, 0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_a_sign_is_read_as_it_was_written(logs: Path) -> None:
    write_sign(logs, SIGN)
    write_sign(logs, WorkerSign("cpu-1", "cpu", load=float("nan")))
    (logs / "worker-cpu-1.log").write_text("a log")
    assert read_signs(logs.parent) == [WorkerSign("cpu-1", "cpu"), SIGN]
    remove_sign(logs, "cpu-1")
    remove_sign(logs, "cpu-1")
    assert read_signs(logs.parent) == [SIGN]
    assert read_signs(logs) == []


def test_a_sign_that_cannot_be_written_is_missed_by_nobody(logs: Path) -> None:
    write_sign(logs / "gone", SIGN)
    sign_file(logs, "cuda-0").mkdir()
    write_sign(logs, SIGN)
    assert read_signs(logs.parent) == []
    assert list(logs.glob(".*")) == [], "nothing is left of it"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"worker": "other"}', '{"worker": 3}', "[" * 100_000, '"' + "x" * 70_000 + '"']
)
def test_what_is_no_sign_is_left_out(logs: Path, content: str) -> None:
    (logs / "worker-x.json").write_text(content)
    write_sign(logs, SIGN)
    assert read_signs(logs.parent) == [SIGN]


def test_freshness_goes_by_beats_and_the_readers_own_clock(logs: Path) -> None:
    now, wall = [100.0], [1e9]
    watch = SignWatch(logs.parent, lambda: now[0], lambda: wall[0])

    def beat(number: int, written: float) -> list[tuple[float, bool]]:
        write_sign(logs, WorkerSign("cpu", "cpu", beat=number, time=written))
        os.utime(sign_file(logs, "cpu"), (written, written))
        return [(one.age, one.fresh) for one in watch.read()]

    assert beat(1, 1e9 - 3) == [(3.0, True)], "the first time, by the file's time"
    now[0] += 4
    wall[0] -= 86400.0
    assert beat(1, 1e9 - 3) == [(7.0, True)]
    assert beat(2, 1e9 + 7200) == [(0.0, True)], "it beats, whatever its machine takes for the time"
    now[0] += 11
    wall[0] += 1e6
    assert beat(2, 1e9 + 7200) == [(11.0, False)]
    assert SignWatch(logs.parent, now=lambda: 1e9 + 7300).read()[0].fresh is False
    assert SignWatch(logs.parent, now=lambda: 1e9).read()[0].fresh, "a clock ahead of ours is no sign of death"
    assert beat(1, 5.0) == [(0.0, True)], "a process that began anew counts from one again"
