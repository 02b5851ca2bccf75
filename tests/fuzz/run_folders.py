"""A study's folder with one file damaged or gone: a run is as it was or is left out by name, and verify says so."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from fairtune.analysis.results import load_results
from fairtune.analysis.verification import verify_study
from fairtune.ledger.index import refresh_index
from fairtune.report.gathering import make_content
from tests.fuzz import made
from tests.fuzz.mutating import damaged
from tests.fuzz.outcomes import Outcome, judge
from tests.fuzz.registering import target

UNREAD = {".lock", ".checked.json"}


def _look(runs: Path, unfinished: bool) -> None:
    results = load_results(runs, "toy")
    content = make_content(results)
    for run in results.runs:
        name = f"{run.arm}/seed-{run.seed}"
        if run.status == "finished":
            assert run.metrics == made.figures()[run.arm, run.seed], f"{name} has other figures"
        else:
            told = [*content.exclusions, *content.unfinished, *content.failures]
            assert any(name in text for text in told), f"{name} is left out without a word"
    sound = verify_study(runs, "toy").sound
    whole = all(run.status == "finished" for run in results.runs)
    assert whole or unfinished or not sound, "verify calls sound what reports leave out"
    rows = {(row.arm, row.seed) for row in refresh_index(runs)}
    assert len(rows) >= len(results.runs) - 1, "one run hides others"


@target("run folders", 120)
def run_folders(seed: int, folder: Path) -> Outcome | None:
    dice, runs = random.Random(seed), folder / "runs"
    shutil.copytree(made.ledger(), runs, copy_function=shutil.copy2)
    files = [path for path in sorted((runs / "toy").rglob("*")) if path.is_file() and path.name not in UNREAD]
    unfinished = seed % 4 == 0
    if unfinished:  # as a killed run leaves its folder, where nothing is closed
        chosen = dice.choice(sorted((runs / "toy").glob("*/seed-*")))
        for name in ("result.json", "manifest.json"):
            (chosen / name).unlink()
        files = [path for path in files if path.is_relative_to(chosen) and path.exists()]
    file = dice.choice(files)
    before = file.read_bytes()
    if seed % 7 == 0:
        file.unlink()
        after = b""
    else:
        after = damaged(before, seed)
        file.write_bytes(after)
    return judge(str(file.relative_to(runs)), before, after, lambda: _look(runs, unfinished))
