"""The cache: built once, found again, built again when it cannot be read."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtune.core import cache
from fairtune.core.cache import cached, cached_json, content_hash
from fairtune.core.errors import DataError
from fairtune.core.stages import stoppable

KEY, OTHER = "0" * 32, "1" * 32


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Builder:
    """Fills an entry and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "data.txt").write_text("content")


def read(folder: Path) -> str:
    found = (folder / "data.txt").read_text()
    if found != "content":
        raise ValueError("damaged")
    return found


def test_an_entry_is_built_once_and_found_again() -> None:
    build = Builder()
    assert [cached("tasks", key, build, read) for key in (KEY, KEY, OTHER)] == ["content"] * 3
    assert build.calls == 2


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda folder: (folder / "data.txt").write_text("cont"),
    "a file gone": lambda folder: (folder / "data.txt").unlink(),
    "a file for the folder": lambda folder: (shutil.rmtree(folder), folder.write_text("what?")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_entry_that_cannot_be_read_is_built_again(damage: str, own_cache: Path) -> None:
    build = Builder()
    cached("tasks", KEY, build, read)
    DAMAGE[damage](own_cache / "tasks" / KEY)
    for _ in range(2):
        assert cached("tasks", KEY, build, read) == "content"
        assert build.calls == 2, "what was repaired is whole"
    assert sorted(path.name for path in (own_cache / "tasks").iterdir()) == [KEY, f"{KEY}.lock"], "no trace is left"


BUILD = f"""
import sys, time
from pathlib import Path
from fairtune.core.cache import cached

def build(folder):
    with (folder / "data.bin").open("wb") as handle:
        for part in range(4):
            handle.write(b"x" * 1000)
            handle.flush()
            print("writing", flush=True)
            time.sleep(float(sys.argv[1]))

print(cached("tasks", "{KEY}", build, lambda folder: (folder / "data.bin").stat().st_size), flush=True)
"""


def start(pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", BUILD, str(pause)], stdout=subprocess.PIPE, text=True)


def test_a_killed_build_is_never_taken_for_whole(own_cache: Path) -> None:
    process = start(pause=100)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    build = Builder()
    assert cached("tasks", KEY, build, read) == "content"
    assert build.calls == 1
    assert sorted(path.name for path in (own_cache / "tasks").iterdir()) == [KEY, f"{KEY}.lock"]


def test_processes_that_build_the_same_at_once_get_one_whole_entry() -> None:
    processes = [start(pause=0.1) for _ in range(3)]
    answers = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [answer[-1] for answer in answers] == ["4000"] * 3
    assert sum("writing" in answer for answer in answers) == 1, "the others waited for the first"


def test_waiting_for_another_process_can_be_stopped() -> None:
    process = start(pause=100)
    assert process.stdout is not None
    process.stdout.readline()

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), stoppable(stop):
        cached("tasks", KEY, Builder(), read)
    process.kill()
    process.communicate()


def test_a_cache_that_cannot_be_written_says_what_to_do(own_cache: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"the cache cannot be used .* set FAIRTUNE_CACHE"):
        cached("tasks", KEY, Builder(), read)
    assert cached_json("cards", KEY, lambda: [1]) == [1], "what is small is made each time"


@pytest.mark.parametrize("content", ["", "[]", "null", '{"value', "5"])
def test_plain_data_is_made_once_and_again_when_it_cannot_be_read(own_cache: Path, content: str) -> None:
    made: list[int] = []

    def make() -> list[int]:
        made.append(1)
        return made

    assert cached_json("cards", KEY, make) == cached_json("cards", KEY, make) == [1]
    (own_cache / "cards" / f"{KEY}.json").write_text(content)
    assert cached_json("cards", KEY, make) == cached_json("cards", KEY, make) == [1, 1]


def test_a_file_is_hashed_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data.csv"
    file.write_text("one")
    monkeypatch.setattr(cache, "RACY_SECONDS", -1.0)  # as if the file were old
    first, reads = content_hash(file), []
    monkeypatch.setattr(cache, "sha256_of", lambda path: reads.append(path) or "read again")
    assert content_hash(file) == first
    assert not reads
    file.write_text("two!")
    assert content_hash(file) == "read again"


def test_a_file_that_has_just_changed_is_not_trusted_by_its_times(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("one")
    first, stamp = content_hash(file), file.stat()
    file.write_text("two")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert content_hash(file) != first
