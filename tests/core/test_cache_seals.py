"""Seals: whatever happens to a note of the cache or to the files it tells of, the data that comes out is the data that went in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtune.core import cache
from fairtune.core import cache as seals
from fairtune.core.cache import SEAL, cached, content_hash
from fairtune.core.cache_contents import Verified, discard, verify
from fairtune.tasks.stores import known_rows, remember_rows

KEY, OTHER = "0" * 32, "1" * 32
LARGE = b"large" * seals.SMALL
"""More than is read again each time."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "RACY", -1.0)  # as if files were old
    return tmp_path / "cache"


def build(folder: Path) -> None:
    (folder / "large.bin").write_bytes(LARGE)
    (folder / "facts.json").write_text('{"rows": 3}')


def entry(key: str = KEY) -> Path:
    return cached("tasks", key, build)


def is_as_built(folder: Path) -> bool:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "facts.json",
        "large.bin",
        SEAL,
    ] and ((folder / "large.bin").read_bytes(), (folder / "facts.json").read_text()) == (LARGE, '{"rows": 3}')


def in_seal(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """A change of the seal's content that leaves it JSON; it does not know how to close it again."""

    def apply(folder: Path) -> None:
        content = json.loads((folder / SEAL).read_bytes())
        change(content)
        (folder / SEAL).write_text(json.dumps(content))

    return apply


def other_data(folder: Path) -> None:
    """Other data, with a seal that says so, but was closed for what was there."""
    (folder / "facts.json").write_text('{"rows": 4}')
    content = json.loads((folder / SEAL).read_bytes())
    facts = content["files"]["facts.json"]
    facts["sha256"] = seals.sha256_of(folder / "facts.json")
    facts["stat"] = seals.stat_of(folder / "facts.json")
    (folder / SEAL).write_text(json.dumps(content))


def another_entry(folder: Path) -> None:
    """A whole entry, but of something else."""

    def built(aside: Path) -> None:
        build(aside)
        (aside / "facts.json").write_text('{"rows": 5}')

    whole = cached("tasks", OTHER, built)
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)


def resealed(files: dict[str, Any]) -> Callable[[Path], object]:
    """A seal that is closed, by somebody who knows how, and names impossible things."""
    return lambda folder: seals.write_note(folder / SEAL, f"tasks/{KEY}", {"files": files})


DAMAGE: dict[str, Callable[[Path], object]] = {
    "another sha256": in_seal(lambda seal: seal["files"]["facts.json"].update(sha256="0" * 64)),
    "another size": in_seal(lambda seal: seal["files"]["large.bin"]["stat"].__setitem__(0, 1)),
    "a file left out": in_seal(lambda seal: seal["files"].pop("facts.json")),
    "no files": in_seal(lambda seal: seal.update(files={})),
    "no hash of its own": in_seal(lambda seal: seal.pop("seal")),
    "a hash that is none": in_seal(lambda seal: seal.update(seal=["x"])),
    "other data, the seal changed along": other_data,
    "the entry of something else": another_entry,
    "an added file": lambda folder: (folder / "tokenizer_config.json").write_text("{}"),
    "an added folder": lambda folder: (folder / "more").mkdir(),
    "a folder for a file": lambda folder: ((folder / "facts.json").unlink(), (folder / "facts.json").mkdir()),
    "a link for a file": lambda folder: (
        (folder / "facts.json").rename(folder.parent / "elsewhere"),
        (folder / "facts.json").symlink_to(folder.parent / "elsewhere"),
    ),
    "a pipe for a seal": lambda folder: ((folder / SEAL).unlink(), os.mkfifo(folder / SEAL)),
    "a folder for a seal": lambda folder: ((folder / SEAL).unlink(), (folder / SEAL).mkdir()),
    "deep JSON": lambda folder: (folder / SEAL).write_text("[" * 100_000),
    "JSON just not too deep": lambda folder: (folder / SEAL).write_text(
        '{"seal":"","files":' + "[" * 900 + "]" * 900 + "}"
    ),
    "huge numbers": lambda folder: (folder / SEAL).write_text(
        '{"files": {"a": {"stat": [1e999, ' + "9" * 9000 + "]}}}"
    ),
    "closed, of nothing": resealed({}),
    "closed, of a file outside": resealed({"../x": {"sha256": "", "stat": []}}),
    "closed, of wrong types": resealed({"large.bin": 5, "facts.json": None}),
    "closed, without facts": resealed({"large.bin": {}, "facts.json": {}}),
    "a file for the entry": lambda folder: (shutil.rmtree(folder), folder.write_text("what?")),
    "a dead link for the entry": lambda folder: (shutil.rmtree(folder), folder.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_seal_or_entry_gives_the_data_that_was_built(damage: str) -> None:
    folder = entry()
    DAMAGE[damage](folder)
    assert is_as_built(entry())
    entries = [path.name for path in folder.parent.iterdir() if path.name.startswith(".")]
    assert entries == [], "nothing of what was damaged is left"


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_by_verify_and_gone_when_it_is_discarded(damage: str) -> None:
    folder = entry()
    DAMAGE[damage](folder)
    (found,) = verify()
    assert [one.path for one in found.damaged] == [folder]
    assert discard(found.damaged) == 1
    assert all(one.damaged == () for one in verify())
    assert is_as_built(entry())


def test_a_byte_of_a_small_file_is_noticed_whatever_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = entry()
    known = {path: seals.stat_of(path) for path in folder.iterdir()}
    (folder / "facts.json").write_text('{"rows": 7}')
    monkeypatch.setattr(seals, "stat_of", lambda path: known.get(path) or [0, 0, 0, 0])
    assert is_as_built(entry())


def test_verify_reads_what_a_start_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file that changed while its size and times stayed: only reading it shows that."""
    folder = entry()
    known = {path: seals.stat_of(path) for path in folder.iterdir()}
    (folder / "large.bin").write_bytes(b"L" + LARGE[1:])
    monkeypatch.setattr(seals, "stat_of", known.__getitem__)
    assert entry() == folder
    assert not is_as_built(folder)
    (found,) = verify()
    assert (found.name, found.sound) == ("tasks", 0)
    assert [(one.path, one.why) for one in found.damaged] == [(folder, "large.bin was changed")]
    assert discard(found.damaged) == 1
    monkeypatch.undo()


def test_verify_counts_what_is_sound_and_changes_nothing(tmp_path: Path, own_cache: Path) -> None:
    entry(), entry(OTHER)
    (tmp_path / "d.csv").write_text("text,label")
    content_hash(tmp_path / "d.csv")
    remember_rows(tmp_path / "d.csv", 5)
    (own_cache / "tasks" / f".{KEY}.{16 * 'a'}.writing").mkdir()
    copy = shutil.copytree(own_cache, tmp_path / "copy")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTUNE_CACHE", str(copy))
        assert verify() == [Verified("contents", 1, ()), Verified("rows", 1, ()), Verified("tasks", 2, ())]
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_what_is_not_damaged_any_more_is_not_discarded() -> None:
    folder = entry()
    (folder / "large.bin").write_bytes(b"")
    (found,) = verify()
    entry()
    assert discard(found.damaged) == 0
    assert is_as_built(folder)


def test_verify_of_no_cache_or_of_a_file_in_its_place_finds_nothing(own_cache: Path) -> None:
    assert verify() == []
    own_cache.write_text("a file")
    assert verify() == []


def memo_of(own_cache: Path) -> Path:
    (memo,) = (own_cache / "contents").iterdir()
    return memo


def test_every_flipped_bit_of_a_note_is_noticed(tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("one")
    true = content_hash(file)
    memo = memo_of(own_cache)
    whole = memo.read_bytes()
    for place in range(len(whole)):
        memo.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        assert content_hash(file) == true, f"byte {place}"


def test_a_note_of_another_file_says_nothing_of_this_one(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "stat_of", lambda _: [3, 0, 0, 0])
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("one")
    two.write_text("two")
    content_hash(one)
    first = memo_of(own_cache)
    true = content_hash(two)
    (second,) = {*first.parent.iterdir()} - {first}
    shutil.copy(first, second)
    assert content_hash(two) == true != content_hash(one)


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 100_000, '{"stat": 5}', '{"is": [], "rows": 1e999}'])
def test_notes_that_are_none_are_ignored(content: str, tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("one")
    true = content_hash(file)
    remember_rows(file, 5)
    (rows,) = (own_cache / "rows").iterdir()
    for note in (memo_of(own_cache), rows):
        note.write_text(content)
    assert content_hash(file) == true
    assert known_rows(file) is None
    remember_rows(file, 5)
    assert known_rows(file) == 5


def test_a_row_count_with_a_flipped_digit_is_not_reported(tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("one")
    remember_rows(file, 5)
    (note,) = (own_cache / "rows").iterdir()
    note.write_text(note.read_text().replace('"rows": 5', '"rows": 7'))
    assert known_rows(file) is None
