"""`fairtune verify`: whether everything on record is what was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fairtune.cli.command import (
    FAILED_RUN,
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)

if TYPE_CHECKING:
    from fairtune.analysis.verification import CheckedStudy

UNSOUND = FAILED_RUN
STATES = {
    "finished": "sound",
    "failed": "failed",
    "interrupted": "interrupted",
    "running": "running",
    "damaged": "damaged",
}
"""States of a run on disk, and what a column calls them: a finished run that is not damaged is sound."""
StudyName = Annotated[
    str | None,
    typer.Argument(metavar="[STUDY]", help="Name of a study; all of them if absent.", show_default=False),
]


@report_errors
def verify(study: StudyName = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Read everything on record from end to end and say what is sound.

    Each finished run was closed with the sha256 of its files; its scores are computed again from its predictions. The exit
    code is 0 where all is as it was written, 1 where something is not. What was changed or removed since the first plan is listed
    with its date. Runs are never changed.
    """
    from fairtune.analysis.verification import verify_study
    from fairtune.ledger.folders import study_names
    from fairtune.ledger.studies import suite_problems

    studies = [verify_study(runs, name) for name in ([study] if study is not None else study_names(runs))]
    suites = suite_problems(runs) if study is None else []
    sound = all(one.sound for one in studies) and not suites
    if as_json:
        print_json({"sound": sound, "studies": [one.as_json() for one in studies], "suites": suites})
    else:
        _show(studies, suites, runs)
        console().print("Everything that was closed is as it was closed." if sound else "Not everything is sound.")
    if not sound:
        raise typer.Exit(UNSOUND)


def _show(studies: Sequence[CheckedStudy], suites: Sequence[str], runs: Path) -> None:
    out = console()
    if studies:
        table = Table("study", *STATES.values(), box=None, padding=(0, 2, 0, 0))
        for one in studies:
            table.add_row(one.study, *(str(one.runs.get(state) or "-") for state in STATES))
        out.print(table)
    else:
        out.print(f"No study in {runs} yet.")
    for problem in (*(problem for one in studies for problem in one.problems), *suites):
        out.print(f"not sound: {problem}", soft_wrap=True)
    for one in studies:
        for change in one.changes:
            out.print(f"changed: {one.study}: {change}", soft_wrap=True)
