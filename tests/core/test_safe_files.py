"""Files that a crash leaves old or new, never half; predictions that come back bit for bit."""

from __future__ import annotations

import errno
import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairtune.core.files import (
    finite,
    read_json,
    remove_leftovers,
    write_atomically,
    write_folder,
    write_json,
)


def test_a_disk_that_really_takes_no_more_leaves_nothing_half(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"old": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # the kernel itself refuses what goes beyond
    try:
        with pytest.raises(OSError, match="File too large"):
            write_json(tmp_path / "x.json", {"new": "2" * 1000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_json(tmp_path / "x.json") == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"], "no half-written file takes up the full disk"


def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rename = tmp_path / "model", Path.rename
    model.mkdir()
    (model / "weights").write_text("old")

    def fail_for_the_new(path: Path, to: Path) -> Path:
        if (path / "weights").read_text() == "new" and to == model:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(OSError, match="Input/output error"), write_folder(model, replace=True) as aside:
        (aside / "weights").write_text("new")
    assert (model / "weights").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_many_writers_of_one_file_never_tear_each_other(tmp_path: Path) -> None:
    file, contents = tmp_path / "x", [bytes([65 + i]) * (20_000 + i) for i in range(6)]
    file.write_bytes(contents[0])
    torn: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = file.read_bytes()
            if found not in contents:
                torn.append(len(found))

    def write(content: bytes) -> None:
        for _ in range(40):
            write_atomically(file, content)

    with ThreadPoolExecutor() as pool:
        reader = pool.submit(read)
        try:
            list(pool.map(write, contents))  # raises what a writer raised
        finally:
            done.set()
        reader.result()
    assert not torn
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_killed_writers_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".x.json.0123.writing", "x.json", ".lock", "a.writing"):
        (tmp_path / name).write_text("{}")
    remove_leftovers(tmp_path, older_than=3600)
    assert len(list(tmp_path.iterdir())) == 4, "another writer may be at work"
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", "a.writing", "x.json"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "[1", "\xff", "[]", "null"])
def test_what_holds_no_mapping_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    assert read_json(tmp_path / "x.json") is None


def test_numbers_that_json_has_no_word_for_become_null(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    write_json(tmp_path / "x.json", {"a": nan, "b": [inf, -inf, 1.0], "c": {"d": (nan,)}})
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": [None, None, 1.0], "c": {"d": [None]}}
    assert finite({1: 2.0}) == {"1": 2.0}
