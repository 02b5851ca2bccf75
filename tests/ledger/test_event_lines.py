"""Events: appended, never lost once written, and counted once."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairtune.ledger.events import SAMPLE, EventLog, all_events, counted_events, parse_lines


def write(path: Path, *events: tuple[str, int]) -> None:
    log = EventLog(path)
    for event, unit in events:
        log.write(event, unit)
    log.close()


def names(events: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(e["event"], e["unit"]) for e in events]


def test_events_are_appended_with_their_values_and_time(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    log = EventLog(file)
    log.write("step", 1, loss=0.5, seconds=0.1)
    log.close()
    log = EventLog(file)
    log.write("evaluation", 2, score=float("nan"))
    log.close()
    first, second = all_events(file)
    assert (first["event"], first["unit"], first["loss"]) == ("step", 1, 0.5)
    assert second["score"] is None
    assert second["time"] >= first["time"] > 1e9
    for line in file.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_off_last_line_costs_that_line_only(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "events.jsonl"
    write(file, ("step", 1), ("step", 2), ("step", 3))
    file.write_bytes(file.read_bytes()[:-cut])
    assert names(all_events(file)) == [("step", 1), ("step", 2)]
    write(file, ("resumed", 2), ("step", 3))
    assert names(all_events(file))[-2:] == [("resumed", 2), ("step", 3)]
    assert names(all_events(file))[:2] == [("step", 1), ("step", 2)]


def test_what_was_lost_and_done_again_is_counted_once(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    write(file, ("resumed", 0), ("step", 0), ("step", 1), ("warning", 1), ("step", 2), ("step", 3), ("failed", 0))
    write(file, ("resumed", 2), ("step", 2), ("step", 3), ("evaluation", 4))
    assert names(counted_events(file)) == [
        *[("resumed", 0), ("step", 0), ("step", 1), ("warning", 1), ("failed", 0)],
        *[("resumed", 2), ("step", 2), ("step", 3), ("evaluation", 4)],
    ]
    assert len(all_events(file)) == 11, "nothing is removed from the file"


WRITER = """
import sys
from pathlib import Path
from fairtune.ledger.events import EventLog
log = EventLog(Path(sys.argv[1]))
for i in range(10**9):
    log.write("step", i, loss=0.1 * i, text="x" * 200)
    print(i, flush=True)
"""


def test_kill_9_loses_no_line_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 500:
                process.kill()
                break
        reported = [int(line), *(int(rest) for rest in process.stdout if rest.endswith("\n"))]
    assert process.returncode == -signal.SIGKILL
    found = [event["unit"] for event in all_events(file)]
    assert found == list(range(len(found)))
    assert found[-1] >= max(reported)


FULL = """
import resource, signal, sys
from pathlib import Path
from fairtune.ledger.events import EventLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = EventLog(Path(sys.argv[1]))
log.write("step", 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    log.write("step", 2, text="x" * 200)
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.write("failed", 2, reason="full")
log.close()
"""


def test_a_line_cut_short_by_a_full_disk_does_not_swallow_the_next(tmp_path: Path) -> None:
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY:
        pytest.skip("file sizes are limited here")
    file = tmp_path / "events.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "File too large"
    assert names(all_events(file)) == [("step", 1), ("failed", 2)]


def test_samples_of_the_device_come_from_another_thread_and_end_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    ended = threading.Event()

    def sample() -> None:
        while not ended.is_set():
            log.write_sample(gpus=[{"index": 0, "utilisation": 50, "temperature": 60}])

    thread = threading.Thread(target=sample)
    thread.start()
    for step in range(1, 300):
        log.write("step", step, step=step, loss=0.5)
    log.write("finished", 300, accuracy=0.5)
    size = path.stat().st_size
    log.write_sample(gpus=[])
    log.close()
    log.write_sample(gpus=[])
    ended.set()
    thread.join()
    assert path.stat().st_size == size, "the file is sealed now"
    assert all(parse_lines(line) for line in path.read_bytes().splitlines()), "no line is torn"
    found = all_events(path)
    assert [event["step"] for event in found if event["event"] == "step"] == list(range(1, 300))
    units = [event["unit"] for event in found]
    assert units == sorted(units), "a sample belongs to the unit that was written last"
    assert any(event["event"] == SAMPLE for event in found)
