"""A study's folder with one file damaged or gone: a run is as it was or is left out by name, and verify says so."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from fairtune.analysis.results import load_results
from fairtune.analysis.verification import verify_study
from fairtune.ledger.scan import LedgerScan
from fairtune.report.writer import make_content
from tests.fuzz import made
from tests.fuzz.mutating import damaged
from tests.fuzz.outcomes import Outcome, judge
from tests.fuzz.registering import target

UNREAD = {".lock", ".checked.json"}


def _look(runs: Path, file: Path, closed: bool, seed: int) -> None:
    """Read the study as everybody does who reads one; the dearer readers take turns."""
    results = load_results(runs, "toy")
    for run in results.runs:
        if run.status == "finished" and file.is_relative_to(run.folder.path):
            assert run.metrics == made.figures()[run.arm, run.seed], "other figures"
    lost = [f"{run.arm}/seed-{run.seed}" for run in results.runs if run.status != "finished"]
    if seed % 3 == 0:
        content = make_content(results)
        trouble = content.sections["trouble"]
        messages = [*trouble.exclusions, *trouble.unfinished, *trouble.failures]
        assert all(any(name in text for text in messages) for name in lost), f"{lost} left out without a word"
    elif seed % 3 == 1:
        assert not lost or not closed or not verify_study(runs, "toy").sound, (
            "verify calls sound what reports leave out"
        )
    else:
        scan = LedgerScan(runs)
        scan.tick()
        rows = scan.rows("toy")
        assert [row.status for row in rows] == [run.status for run in results.runs], "views say something else"


@target("run folders", 45)
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
    return judge(str(file.relative_to(runs)), before, after, lambda: _look(runs, file, not unfinished, seed))
