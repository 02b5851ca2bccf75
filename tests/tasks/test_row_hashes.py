"""Texts are hashed many at a time, by as many processes as there are cores, and it shows in nothing but the time."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fairtune.core.errors import DataError
from fairtune.tasks import helper_process
from fairtune.tasks.reading import row_hashes
from fairtune.tasks.reading.row_hashes import EXACT, NORMAL, PLACE
from fairtune.tasks.reading.rows import Rows, read_rows
from fairtune.tasks.text_hashes import PAIR_SEPARATOR, exact_and_normal, normal_form, unit_hashes

MANY = 12_000
TEXTS = ["A plain text", "Ünïcödé – Straße", "12 - 34", " ?! ", "don't"]


def test_hashes_of_many_texts_are_those_of_each() -> None:
    draw = random.Random(0)
    pools = (" ab1 2,.Z_'\t\n\x1c\0", "äß ÉΣςσ1٣٤ ½²１２-\u2028\u00a0İﬁ字。😀\ud83d", "0123456789 .,-:", "!? .")
    texts = ["".join(draw.choices(draw.choice(pools), k=draw.randrange(20))) for _ in range(3000)]
    texts += ["9 9 " * 20_000, "é " + "9 9 " * 20_000]
    pairs = list(zip(texts, reversed(texts), strict=True))
    for examples in ([(text,) for text in texts], pairs):
        exact, normal = exact_and_normal(examples)
        for found, form in ((exact, str), (normal, normal_form)):
            joined = [PAIR_SEPARATOR.join(map(form, example)).encode("utf-8", "surrogatepass") for example in examples]
            wanted = b"".join(hashlib.blake2b(one, digest_size=8).digest() for one in joined)
            assert found.tobytes() == wanted
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
    assert unit_hashes(texts).tolist() == [int.from_bytes(digest[:8], "big") / 2**64 for digest in digests]
    assert len(exact_and_normal([])[0]) == 0
    assert np.all(unit_hashes(texts) < 1)


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
    start = helper_process.start_helper

    def started_helper(module: str) -> subprocess.Popen[bytes]:
        found.append(start(module))
        return found[-1]

    monkeypatch.setattr(helper_process, "start_helper", started_helper)
    monkeypatch.setattr(helper_process, "available_cores", lambda: 3)
    monkeypatch.setattr(row_hashes, "FEW_ROWS", 10)
    return found


@pytest.mark.parametrize("fate", ["lives", "dies", "never started"])
def test_the_hashes_are_the_same_whoever_makes_them(
    tmp_path: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    start = helper_process.start_helper

    def fated(module: str) -> Any:
        if fate == "never started":
            raise OSError("no room")
        process = start(module)
        if fate == "dies":
            process.kill()
            process.wait()
        return process

    monkeypatch.setattr(helper_process, "start_helper", fated)
    file = write_file(tmp_path)
    several = hashes(read(file, "several"))
    assert bool(started) == (fate != "never started")
    assert all(process.returncode is not None for process in started)
    monkeypatch.setattr(helper_process, "available_cores", lambda: 1)
    rows = read(file, "alone")
    assert hashes(rows) == several
    texts = [text for batch in rows.batches(["text"]) for (text,) in batch]
    exact, normal = exact_and_normal((text,) for text in texts)
    assert several[:2] == [exact.tolist(), normal.tolist()]
    assert several[2] == unit_hashes(text.strip().lower() for text in texts).tolist()


def test_a_mistake_in_the_file_ends_them(tmp_path: Path, started: list[Any]) -> None:
    with pytest.raises(DataError, match=f"line {MANY + 1}"):
        read(write_file(tmp_path, last='"label": '), "rows")
    assert started
    assert all(process.returncode is not None for process in started)


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_none_is_left_when_the_parent_is_ended(tmp_path: Path, ended_by: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "import pyarrow as pa\n"
        "from fairtune.tasks.reading import row_hashes\n"
        "from fairtune.tasks import helper_process\n"
        "helper_process.available_cores = lambda: 3\n"
        "row_hashes.FEW_ROWS = 0\n"
        "start = helper_process.start_helper\n"
        "def started(module):\n"
        "    process = start(module)\n"
        "    print(process.pid, flush=True)\n"
        "    return process\n"
        "helper_process.start_helper = started\n"
        "def batches():\n"
        "    while True:\n"
        "        yield pa.record_batch({'text': pa.array(['a'], pa.large_string())})\n"
        "        time.sleep(0.05)\n"
        "for _ in row_hashes.with_hashes(batches(), ['text'], True):\n"
        "    pass\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    helpers = [psutil.Process(int(parent.stdout.readline())) for _ in range(2)]
    parent.send_signal(ended_by)
    parent.communicate()
    _, alive = psutil.wait_procs(helpers, timeout=30)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
