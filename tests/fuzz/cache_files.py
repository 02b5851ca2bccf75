"""Files of the cache, truncated between two uses: the data is the same as before."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from fairtune.core.cache import cache_folder
from fairtune.tasks import load_task
from tests.fuzz.outcomes import Outcome, judge, put
from tests.fuzz.registering import target

ROWS = "text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(40))


@target("cached tasks", 40)
def tasks(seed: int, folder: Path) -> Outcome | None:
    source = put(folder / "d.csv", ROWS.encode())

    def use() -> Any:
        task = load_task({"train": str(source), "validation": str(source), "test": str(source)})
        return task.facts(), task.splits["train"].texts[:], task.splits["test"].ids

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRTUNE_CACHE", str(folder / "cache"))
        patch.setattr(os, "fsync", lambda _: None)
        dice, equal = random.Random(seed), use()
        file = dice.choice(
            sorted(path for path in cache_folder().rglob("*") if path.is_file() and path.suffix != ".lock")
        )
        before = file.read_bytes()
        after = before[: dice.randrange(len(before))]
        put(file, after)
        return judge(str(file.relative_to(cache_folder())), before, after, use, equal)
