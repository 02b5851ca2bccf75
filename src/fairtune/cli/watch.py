"""`fairtune watch`: studies in the terminal while they run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import (
    INTERRUPTED,
    AsJson,
    Runs,
    console,
    leave_quietly,
    print_json,
    report_errors,
)
from fairtune.core.errors import FairtuneError

SOONEST, LATEST = 0.2, 3600.0
StudyToWatch = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="Name of a study, or its folder; the one that runs, or all, if absent.",
        show_default=False,
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Show how it is now, all of it, and end.")]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", help="How often to look.")]


@report_errors
def watch(
    study: StudyToWatch = None,
    runs: Runs = Path("runs"),
    once: Once = False,
    every: Every = 2.0,
    as_json: AsJson = False,
) -> None:
    """Watch a study in the terminal: arms with n and intervals, runs under way, devices, failures, time left.

    It only reads the ledger, so it can be begun and left at any time, also from another machine that has the folder. It ends by
    itself when every run has ended; Ctrl-C leaves before (exit code 130), and the study goes on. Where the output is no
    terminal, it prints a frame when something changed, at most every 30 seconds. `--json` answers once.
    """
    if not SOONEST <= every <= LATEST:
        raise FairtuneError(f"--every is {every:g}; it must be from {SOONEST:g} to {LATEST:g} seconds.")
    with leave_quietly(INTERRUPTED):
        from fairtune.monitor.study_view import StudyView
        from fairtune.monitor.watch_loop import frame, show_until_ended
        from fairtune.monitor.watched_study import make_watch

        watched = make_watch(runs, study)
        if not (once or as_json):
            show_until_ended(watched.look, watched.settled, console(), every)
            return
        seen = watched.settled()
        if as_json:
            print_json(asdict(seen) if isinstance(seen, StudyView) else {"studies": [asdict(view) for view in seen]})
        else:
            shown = console()
            shown.print(frame(seen, shown.width))
