"""`fairtune dash`: studies in the browser while they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import Runs, leave_quietly, print_text, report_errors

PORT = 8321
ShownStudy = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="Name of the study to show first; a list of all, if absent.", show_default=False
    ),
]
Port = Annotated[
    int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Where to listen; 0 takes a free one.")
]
Host = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Who can ask: by default this machine only; 0.0.0.0 lets others."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="FAIRTUNE_DASH_TOKEN",
        help="What others must know to see it, beyond this machine; one is made if absent. Also as FAIRTUNE_DASH_TOKEN.",
        show_default=False,
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name", metavar="NAME", help="A name that browsers call this machine by, beyond its own; may be repeated."
    ),
]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open it in this machine's browser.")]


@report_errors
def dash(
    study: ShownStudy = None,
    runs: Runs = Path("runs"),
    port: Port = PORT,
    host: Host = "127.0.0.1",
    token: Token = None,
    names: Names = None,
    open_browser: Open = False,
) -> None:
    """Show studies in the browser while they run, and after.

    It only reads the ledger and changes nothing: it can be begun and ended at any time, also on another machine that has the
    folder. Ctrl-C ends it, and the studies go on. From elsewhere: `ssh -L 8321:localhost:8321 MACHINE`, which needs no --host.
    """
    with leave_quietly(0):
        from fairtune.ledger.folders import find_study
        from fairtune.monitor.dash.server import serve_dashboard

        if study is not None:
            runs, study = find_study(study, runs)
        serve_dashboard(runs, study, host, port, token, open_browser, tuple(names or ()), print_text)
