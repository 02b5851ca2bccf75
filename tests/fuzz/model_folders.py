"""Model folders with one thing wrong: they load, or one sentence names the file."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.fuzz import made
from tests.fuzz.outcomes import Outcome, judge
from tests.fuzz.registering import target
from tests.models.damaged_models import damaged, use


@target("model folders", 60)
def model_folders(seed: int, folder: Path) -> Outcome | None:
    place = Path(shutil.copytree(made.classifier(), folder / "model"))
    what = damaged(place, seed)
    return judge(what, b"", b"", lambda: use(place, inspected=seed % 5 == 0))
