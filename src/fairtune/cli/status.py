"""`fairtune status`: how far studies are."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fairtune.cli.command import (
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)
from fairtune.core.errors import LedgerError
from fairtune.ledger.index import planned_status, refresh_index, study_status
from fairtune.ledger.studies import study_names
from fairtune.settings.scales import scale_of

STATES = ("finished", "running", "interrupted", "failed", "damaged", "waiting")
SHOWN_FIELDS = ("arm", "seed", "status", "metric", "score", "seconds", "reason", "signature")
StudyName = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="Name of a study; all if absent.", show_default=False)
]


@report_errors
def status(study: StudyName = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Show how far a study is, or all of them."""
    if study is not None:
        _one(study, runs, as_json)
        return
    counts: dict[str, Counter[str]] = {}
    problems: dict[str, str] = {}
    rows = refresh_index(runs)
    for name in study_names(runs):
        try:
            counts[name] = Counter(run.status for run in planned_status(runs, name, rows).runs)
        except LedgerError as error:  # one study that cannot be read must not hide the others
            problems[name] = str(error)
    if as_json:
        studies = {name: {state: found[state] for state in STATES} for name, found in counts.items()}
        print_json({"studies": studies, "problems": problems})
        return
    if not counts and not problems:
        console().print(f"No study in {runs} yet. Start one with `fairtune run FILE`.")
        return
    table = Table("study", *STATES, box=None, padding=(0, 2, 0, 0))
    for name, found in counts.items():
        table.add_row(name, *(str(found[state] or "-") for state in STATES))
    console().print(table)
    for name, problem in problems.items():
        console().print(f"{name}: cannot be read: {problem}", soft_wrap=True)


def _one(study: str, runs: Path, as_json: bool) -> None:
    found = study_status(runs, study)
    if as_json:
        facts = [{name: value for name, value in asdict(run).items() if name in SHOWN_FIELDS} for run in found.runs]
        numbered = [{"position": position, **run} for position, run in enumerate(facts)]
        print_json({"study": study, "runs": numbered})
        return
    scale = None if found.metric is None else scale_of(found.metric)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("run", "arm", "seed", "state", "score" if scale is None else scale.heading, "seconds", "reason"):
        table.add_column(title, justify="left" if title in ("arm", "state", "reason") else "right")
    for position, run in enumerate(found.runs, start=1):
        score = "-" if run.score is None or scale is None else scale.value(run.score)
        seconds = "-" if run.seconds is None else f"{run.seconds:.0f}"
        table.add_row(str(position), run.arm, str(run.seed), run.status, score, seconds, run.reason or "")
    console().print(table)
