"""Finding a run by its folder or its name."""

from __future__ import annotations

from pathlib import Path

from fairtune.core.errors import LedgerError, nearest, one_of
from fairtune.ledger.folders import RunFolder, run_folders, study_folder, study_names

SHOWN = 6


def find_folder(run: str | Path, runs: Path) -> RunFolder:
    """The folder of a run that has been begun.

    Args:
        run: the folder itself, or `study/arm/seed-n`.
        runs: the folder that keeps the runs.

    Raises:
        LedgerError: there is no such run.
    """
    path = next((p for p in (Path(run), runs / run) if (p / "plan.json").is_file()), None)
    if path is None:
        raise LedgerError(_unknown(str(run), runs))
    return RunFolder(path.resolve())


def _unknown(run: str, runs: Path) -> str:
    known = [
        f"{study}/{folder.arm}/{folder.path.name}"
        for study in study_names(runs)
        for folder in run_folders(study_folder(runs, study))
    ]
    if not known:
        return f"'{run}' is no run: that folder has no plan.json, and the runs folder {runs} holds no run."
    word = Path(run).relative_to(runs) if Path(run).is_relative_to(runs) else Path(run)
    more = ", ..." if len(known) > SHOWN else ""
    return f"'{run}' is no run; runs in {runs}: {one_of(known[:SHOWN])}{more}.{nearest(word.as_posix(), known)}"
