"""Files of the cache, damaged between two uses: the data is the same as before."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairtune.core import cache
from fairtune.core.cache import cache_folder, cached
from fairtune.core.cache_contents import contents, discard, verify
from fairtune.tasks import load_task
from fairtune.tasks.stores import known_rows, remember_rows
from tests.fuzz.mutating import damaged, damaged_json
from tests.fuzz.outcomes import Outcome, judge, put
from tests.fuzz.registering import target

KEY = "0" * 32
ROWS = "text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(40))


def _built(folder: Path) -> None:
    (folder / "numbers.bin").write_bytes(bytes(range(256)) * 4)
    (folder / "facts.json").write_text('{"rows": 4, "name": "x"}')


def _entry() -> dict[str, bytes]:
    folder = cached("tokens", KEY, _built)
    return {name: (folder / name).read_bytes() for name in ("numbers.bin", "facts.json")}


def _task(file: Path) -> Any:
    task = load_task({"train": str(file), "validation": str(file), "test": str(file)})
    return task.facts(), task.splits["train"].texts[:], task.splits["test"].ids


def _after_damage(seed: int, use: Any) -> Outcome | None:
    """Use, damage a file of the cache, use again, and see that verify says so and repairs it."""
    dice, equal = random.Random(seed), use()
    files = sorted(path for path in cache_folder().rglob("*") if path.is_file() and path.suffix != ".lock")
    file = dice.choice(files)
    before = file.read_bytes()
    after = damaged_json(json.loads(before), seed) if file.suffix == ".json" and seed % 3 else damaged(before, seed)
    put(file, after)

    def again() -> Any:
        wrong = [one for kind in verify() for one in kind.damaged]
        if seed % 2:
            discard(wrong)
        found = use()
        assert not any(kind.damaged for kind in verify()), "what was used again is sound"
        assert sum(kind.unfinished for kind in contents()) == 0
        return found

    return judge(str(file.relative_to(cache_folder())), before, after, again, equal)


@contextmanager
def own_cache(folder: Path) -> Iterator[None]:
    """A cache that is empty at first, in which files count as old; nothing waits for the disk, since no power is lost here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTUNE_CACHE", str(folder / "cache"))
        patch.setattr(cache, "RACY", -1.0)
        patch.setattr(os, "fsync", lambda _: None)
        yield


@target("cache entries", 60)
def entries(seed: int, folder: Path) -> Outcome | None:
    with own_cache(folder):
        return _after_damage(seed, _entry)


@target("cached tasks", 40)
def tasks(seed: int, folder: Path) -> Outcome | None:
    file = put(folder / "d.csv", ROWS.encode())

    def use() -> Any:
        rows = known_rows(file)
        assert rows in (None, 40), "a count that is wrong is not told"
        remember_rows(file, 40)
        return _task(file)

    with own_cache(folder):
        return _after_damage(seed, use)
