"""Rows are hashed by as many processes as there are cores, and it shows in nothing but the time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairtune.core.errors import DataError
from fairtune.tasks.reading import row_hasher
from fairtune.tasks.reading.row_hashes import EXACT, NORMAL, PLACE
from fairtune.tasks.reading.rows import Rows, read_rows
from fairtune.tasks.text_hashes import exact_and_normal, unit_hashes

MANY = 12_000
TEXTS = ["A plain text", "Ünïcödé – Straße", "12 - 34", " ?! ", "don't"]


def write_file(folder: Path, rows: int = MANY, last: str = '"label": 0') -> Path:
    file = folder / "rows.jsonl"
    lines = [json.dumps({"text": f"{TEXTS[n % 5]} {n}", "label": n % 2, "fill": "x" * 300}) for n in range(rows)]
    file.write_text("\n".join([*lines, f'{{"text": "the last", {last}}}']), encoding="utf-8")
    return file


def read(file: Path, name: str) -> Rows:
    return read_rows(file, ["text"], "label", file.with_name(name), hashed=["text"], placed=True)


def hashes(rows: Rows) -> list[list[Any]]:
    return [rows.table.column(name).to_pylist() for name in (EXACT, NORMAL, PLACE)]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Three cores and little that is done without processes; gives the ones that are started."""
    found = []
    start = row_hasher.start_helper

    def started_helper(module: str) -> subprocess.Popen[bytes]:
        found.append(start(module))
        return found[-1]

    monkeypatch.setattr(row_hasher, "start_helper", started_helper)
    monkeypatch.setattr(row_hasher, "available_cores", lambda: 3)
    monkeypatch.setattr(row_hasher, "FEW_ROWS", 10)
    monkeypatch.setattr(row_hasher, "AHEAD", 1000)  # all that can be is left to them
    return found


def test_the_hashes_are_the_same_whoever_makes_them(tmp_path: Path, started: list[Any], monkeypatch: Any) -> None:
    file, made_here = write_file(tmp_path), []
    real = row_hasher.hash_batch
    monkeypatch.setattr(row_hasher, "hash_batch", lambda *given: made_here.append(1) or real(*given))
    several = hashes(read(file, "several"))
    assert len(started) == 2
    assert len(made_here) == 1  # the first
    assert [process.returncode for process in started] == [0, 0]
    monkeypatch.setattr(row_hasher, "available_cores", lambda: 1)
    rows = read(file, "alone")
    assert len(started) == 2
    assert hashes(rows) == several
    texts = [text for batch in rows.batches(["text"]) for (text,) in batch]
    exact, normal = exact_and_normal((text,) for text in texts)
    assert several[:2] == [exact.tolist(), normal.tolist()]
    assert several[2] == unit_hashes(text.strip().lower() for text in texts).tolist()


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("when", ["at once", "after some", "never started"])
def test_a_process_that_dies_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    file = write_file(tmp_path)
    start = row_hasher.start_helper

    def fails(module: str) -> Any:
        if when == "never started":
            raise OSError("no room")
        process = start(module)
        if when == "at once":
            process.kill()
            process.wait()
        return process

    monkeypatch.setattr(row_hasher, "start_helper", fails)
    if when == "after some":
        finish = row_hasher.HashProcess.finish

        def killed(process: row_hasher.HashProcess) -> Iterator[tuple[int, bytes]]:
            while process.waiting() == len(process.given):
                time.sleep(0.01)
            process.process.kill()
            content = process.file.read_bytes()
            process.file.write_bytes(content[: process.given[0][1] + 100])  # as if in the middle of its second batch
            found = list(finish(process))
            assert len(found) == 1 < len(process.given)
            return iter(found)

        monkeypatch.setattr(row_hasher.HashProcess, "finish", killed)
    found = hashes(read(file, "died"))
    monkeypatch.setattr(row_hasher, "available_cores", lambda: 1)
    assert found == hashes(read(file, "alone"))


def test_a_mistake_in_the_file_ends_them(tmp_path: Path, started: list[Any]) -> None:
    with pytest.raises(DataError, match=f"line {MANY + 1}"):
        read(write_file(tmp_path, last='"label": '), "rows")
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_none_is_left_when_the_parent_is_ended(tmp_path: Path, ended_by: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from fairtune.tasks.reading import row_hasher\n"
        "import pyarrow as pa\n"
        "row_hasher.available_cores = lambda: 3\n"
        "row_hasher.FEW_ROWS = 0\n"
        "with row_hasher.RowHasher(Path(sys.argv[1]), ['text'], True) as hasher:\n"
        "    hasher._begin(pa.schema([('text', pa.large_string())]))\n"
        "    print(*(one.process.pid for one in hasher._processes), flush=True)\n"
        "    time.sleep(60)\n"
    )
    rows = tmp_path / "rows"
    rows.touch()
    parent = subprocess.Popen(
        [sys.executable, str(program), str(rows)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    helpers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(helpers) == 2
    parent.send_signal(ended_by)
    parent.communicate()
    _, alive = psutil.wait_procs(helpers, timeout=30)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
