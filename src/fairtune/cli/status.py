"""`fairtune status`: how far studies are."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from fairtune.analysis.scales import scale_of
from fairtune.cli.command import (
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)
from fairtune.ledger.folders import require_study, study_names
from fairtune.ledger.scan import LedgerScan, RunRow

if TYPE_CHECKING:
    from fairtune.execution.executors.slurm import RunInQueue
    from fairtune.monitor.study_view import RunView, StudyView

OPEN = ("running", "interrupted", "failed", "waiting")
"""States of runs that a job in a queue may be for."""
STATES = ("finished", "running", "interrupted", "failed", "damaged", "waiting")
SHOWN_FIELDS = ("arm", "seed", "status", "metric", "score", "seconds", "reason", "signature")
LIVE_FIELDS = ("step", "steps", "epoch", "epochs", "loss", "split", "speed", "left", "phase", "worker", "warnings")
"""What is known of runs under way, those that failed and the latest, besides."""
PATIENCE = 10.0
"""Seconds to wait for the verdict so far."""
StudyName = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="Name of a study; all if absent.", show_default=False)
]


@report_errors
def status(study: StudyName = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Show how far a study is, or all of them."""
    if study is not None:
        _one(study, runs, as_json)
        return
    scan = LedgerScan(runs)
    if study_names(runs):
        scan.tick()
    problems = scan.problems  # one study that cannot be read must not hide the others
    counts = {name: Counter(run.status for run in scan.rows(name)) for name in scan.studies if name not in problems}
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
    from fairtune.monitor.watch_tables import progress_cells
    from fairtune.monitor.watch_view import summary_lines
    from fairtune.monitor.watched_study import WatchedStudy

    require_study(runs, study)
    watched = WatchedStudy(runs, study)
    view, rows = watched.settled(PATIENCE), watched.rows
    live = {(run.arm, run.seed): run for run in view.runs}
    queued = _queued(runs / study)
    if as_json:
        print_json(_facts(rows, view, live, queued))
        return
    scale = None if view.metric is None else scale_of(view.metric)
    under_way = any(run.status == "running" for run in rows)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in (
        *("run", "arm", "seed", "state", "score" if scale is None else scale.heading, "seconds"),
        *(("step", "loss", "left") if under_way else ()),
        "reason",
    ):
        table.add_column(title, justify="left" if title in ("arm", "state", "reason") else "right")
    for position, run in enumerate(rows, start=1):
        score = "-" if run.score is None or scale is None else scale.value(run.score)
        seconds = "-" if run.seconds is None else f"{run.seconds:.0f}"
        moving = progress_cells(live.get((run.arm, run.seed))) if under_way else ()
        place = queued.get(f"{run.arm}/seed-{run.seed}") if run.status in OPEN else None
        reason = run.reason or ("" if place is None else place.words)
        table.add_row(str(position), run.arm, str(run.seed), run.status, score, seconds, *moving, reason)
    shown = console()
    shown.print(table)
    if len(view.arms) > 1 or under_way:
        shown.print(Group("", *summary_lines(view, shown.width)))


def _queued(home: Path) -> dict[str, RunInQueue]:
    """Runs whose jobs are in a queue; Slurm is asked only of studies that it was given."""
    if not (home / "jobs" / "slurm.json").is_file():
        return {}
    from fairtune.execution.executors.slurm import runs_in_queue

    return runs_in_queue(home)


def _facts(
    runs: list[RunRow], view: StudyView, live: dict[tuple[str, int], RunView], queued: dict[str, RunInQueue]
) -> dict[str, Any]:
    """The runs of the plan, each with how far it is, and the study."""
    nothing: dict[str, Any] = dict.fromkeys(LIVE_FIELDS)
    rows = []
    for position, run in enumerate(runs):
        facts = {name: value for name, value in asdict(run).items() if name in SHOWN_FIELDS}
        known = live.get((run.arm, run.seed))
        moving = nothing if known is None else {name: getattr(known, name) for name in LIVE_FIELDS}
        place = queued.get(f"{run.arm}/seed-{run.seed}") if run.status in OPEN else None
        queue = {} if place is None else {"queue": asdict(place)}
        rows.append({"position": position, **facts, **moving, **queue})
    study = {name: value for name, value in asdict(view).items() if name not in ("study", "runs")}
    del study["verdict"]["made"]
    return {"study": view.study, "runs": rows, **study}
