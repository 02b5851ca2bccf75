"""The cache: built once, found again, never taken for whole when it is not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairtune.core import cache
from fairtune.core.cache import SEAL, cached, content_hash, key_of
from fairtune.core.errors import DataError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Builder:
    """Fills an entry and counts how often."""

    def __init__(self, content: bytes = b"a long enough content") -> None:
        self.content, self.calls = content, 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "data.bin").write_bytes(self.content)
        (folder / "facts.json").write_text("{}")


def test_an_entry_is_built_once_and_found_again() -> None:
    build = Builder()
    first = cached("things", "k", build)
    assert cached("things", "k", build) == first
    assert (first / "data.bin").read_bytes() == build.content
    assert build.calls == 1
    cached("things", "other", build)
    assert build.calls == 2


def test_the_key_depends_on_every_part_and_not_on_the_order_of_names() -> None:
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert len({key_of(parts) for parts in ([1, "2"], ["1", 2], [[1], "2"], {"a": None}, {"a": 0})}) == 5


@pytest.mark.parametrize(
    "damage", ["flipped", "cut", "longer", "gone", "seal gone", "seal cut", "seal of something else"]
)
def test_a_damaged_entry_is_noticed_and_built_again(damage: str, caplog: pytest.LogCaptureFixture) -> None:
    build = Builder()
    folder = cached("things", "k", build)
    data, seal = folder / "data.bin", folder / SEAL
    match damage:
        case "flipped":
            data.write_bytes(b"A" + build.content[1:])
        case "cut":
            data.write_bytes(build.content[:-3])
        case "longer":
            data.write_bytes(build.content + b"!")
        case "gone":
            data.unlink()
        case "seal gone":
            seal.unlink()
        case "seal cut":
            seal.write_bytes(seal.read_bytes()[:20])
        case _:
            seal.write_text("[1, 2]")
    assert (cached("things", "k", build) / "data.bin").read_bytes() == build.content
    assert build.calls == 2
    assert caplog.text.count("is damaged") == 1, "it is said once"
    assert cached("things", "k", build) == folder
    assert build.calls == 2, "what was repaired is whole"


def test_a_byte_that_changed_without_a_change_of_size_or_time_of_writing_is_noticed() -> None:
    build = Builder()
    data = cached("things", "k", build) / "data.bin"
    before = data.stat()
    data.write_bytes(b"A" + build.content[1:])
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    cached("things", "k", build)
    assert build.calls == 2


def test_an_entry_that_was_copied_elsewhere_is_as_good(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    cached("things", "k", build)
    shutil.copytree(own_cache, own_cache.with_name("copy"))
    monkeypatch.setenv("FAIRTUNE_CACHE", str(own_cache.with_name("copy")))
    cached("things", "k", build)
    assert build.calls == 1


def test_a_build_that_fails_leaves_nothing_behind(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "data.bin").write_bytes(b"half of")
        raise DataError("no more")

    with pytest.raises(DataError, match="no more"):
        cached("things", "k", fail)
    assert [path.name for path in (own_cache / "things").iterdir()] == ["k.lock"]


BUILD = """
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

folder = cached("things", "k", build)
print((folder / "data.bin").stat().st_size, flush=True)
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
    folder = cached("things", "k", build)
    assert build.calls == 1
    assert sorted(path.name for path in (own_cache / "things").iterdir()) == ["k", "k.lock"], (
        "what it left is cleared away"
    )
    assert (folder / "data.bin").read_bytes() == build.content


def test_processes_that_build_the_same_at_once_get_one_whole_entry() -> None:
    processes = [start(pause=0.1) for _ in range(3)]
    answers = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [answer[-1] for answer in answers] == ["4000"] * 3
    assert sum("writing" in answer for answer in answers) == 1, "the others waited for the first"


def test_whoever_waits_for_another_can_be_stopped() -> None:
    process = start(pause=100)
    assert process.stdout is not None
    process.stdout.readline()

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("things", "k", Builder(), check_stop=stop)
    process.kill()
    process.communicate()


def test_a_cache_that_cannot_be_written_says_what_to_do(own_cache: Path) -> None:
    own_cache.write_text("a file where the folder should be")
    with pytest.raises(
        DataError, match=r"the cache cannot be used .* set FAIRTUNE_CACHE to a folder that can be written"
    ):
        cached("things", "k", Builder())


def test_the_cache_is_in_the_users_cache_folder_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRTUNE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.cache_folder() == Path("/somewhere/fairtune")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == Path("~/.cache/fairtune").expanduser()


def test_a_file_is_hashed_once_and_again_when_it_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data.csv"
    file.write_text("one")
    monkeypatch.setattr(cache, "RACY", -1.0)  # as if the file were old
    first, reads = content_hash(file), []
    monkeypatch.setattr(cache, "sha256_of", lambda path: reads.append(path) or "read again")
    assert content_hash(file) == first
    assert not reads
    file.write_text("two")
    assert content_hash(file) == "read again"


def test_a_file_that_has_just_changed_is_not_trusted_by_its_times(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("one")
    first, stamp = content_hash(file), file.stat()
    file.write_text("two")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert content_hash(file) != first
