"""`fairtune data cache`: what it holds and where; clearing takes entries, never what is being built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tasks.made_tokenizers import STORIES, byte_level, in_memory
from typer.testing import CliRunner

from fairtune.cli.app import app
from fairtune.ledger.folders import lock
from fairtune.tasks import load_task
from fairtune.tasks.tokens.blocks import token_blocks


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["data", "cache", *words])


@pytest.fixture
def filled(tiny_task: Any) -> Path:
    """Two token blocks and a task; returns the folder of one block."""
    load_task(tiny_task.as_study())
    token_blocks(in_memory([STORIES], "other"), "train", byte_level())
    return token_blocks(in_memory([STORIES]), "train", byte_level()).folder


def test_an_empty_cache_is_empty(cache: Path) -> None:
    assert f"{cache}: empty" in call().output
    assert json.loads(call("--json").output) == {"cache": str(cache), "kinds": {}}
    assert "0 entries removed" in call("--clear").output


def test_kinds_are_shown_with_entries_and_sizes(filled: Path) -> None:
    kinds = json.loads(call("--json").output)["kinds"]
    assert (kinds["blocks"]["entries"], kinds["tasks"]["entries"]) == (2, 1)
    assert kinds["blocks"]["size"] == 2 * sum(file.stat().st_size for file in filled.iterdir())
    assert "text for language models as tokens" in call().output


def test_clearing_takes_all_entries_and_what_killed_builds_left(filled: Path, cache: Path) -> None:
    left = filled.with_name(f".{32 * '0'}.{16 * 'a'}.writing")
    left.mkdir()
    (left / "tokens.bin").write_bytes(b"half")
    (cache / "mine").mkdir()
    answer = call("--clear")
    assert answer.exit_code == 0
    assert "entries removed" in answer.output
    assert [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    again = token_blocks(in_memory([STORIES]), "train", byte_level())
    assert again.folder == filled
    assert again.counts.documents == len(STORIES), "made again when it is needed"


def test_what_another_process_builds_is_left(filled: Path) -> None:
    scratch = filled.with_name(f".{filled.name}.{16 * 'a'}.writing")
    scratch.mkdir()
    with lock(filled.with_name(f"{filled.name}.lock"), "taken"):
        call("--clear")
        assert filled.is_dir()
        assert scratch.is_dir()
    call("--clear")
    assert not filled.exists()
    assert not scratch.exists()


def test_nothing_that_is_not_the_caches_own_is_ever_removed(cache: Path, filled: Path) -> None:  # noqa: ARG001
    """A user may name a folder as the cache that holds other things too."""
    others = [
        cache / "photos" / "one.jpg",
        cache / "tasks" / "my-notes.txt",
        cache / "tokens" / "a" / "b",
        cache / "thesis.tex",
    ]
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("precious")
    call("--clear")
    assert all(other.read_text() == "precious" for other in others)
