"""`fairtune claims`: published claims, each with the answer that the runs on record give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from fairtune.cli.command import AsJson, Runs, console, print_json, report_errors
from fairtune.core.printable import printable

Only = Annotated[
    str | None,
    typer.Option(
        "--only", metavar="SOURCE", help="Only one source, such as oelm, or one claim of it, such as oelm/xnli-speed."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the page there, as Markdown, with all details."),
]
STYLES = {"supported": "green", "contradicted": "red", "implausible": "red", "not separable": "yellow"}


@report_errors
def claims(only: Only = None, output: Output = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Answer published claims from the runs on record: supported, contradicted, not separable, implausible, or not yet run."""
    from fairtune.claims.answers import answer_files, count_words, distinct_trials
    from fairtune.claims.page import claims_page, found_text, grounds_text, write_page
    from fairtune.claims.published import load_claims

    files = load_claims(only)
    found = answer_files(files, runs)
    if output is not None:
        write_page(output, claims_page(files, found))
    if as_json:
        print_json({"counts": count_words(found), "claims": [one.as_json() for one in found]})
        return
    table = Table(box=box.SIMPLE)
    for head in ("claim", "claimed", "found here", "answer"):
        table.add_column(head, overflow="fold")  # names are to be typed, so that none is cut
    for one in found:
        told = Text.assemble((one.word, STYLES.get(one.word, "")), grounds_text(one))
        named = Text.assemble((f"{one.source}/{one.claim.id}", "bold"), f"\n{printable(one.claim.text)}")
        table.add_row(named, Text(printable(one.claim.claimed)), Text(printable(found_text(one))), told)
    console().print(table)
    trials = list(distinct_trials(found))
    waiting = [trial for trial in trials if trial.word == "not yet run" and trial.cost is not None]
    if waiting:
        console().print(Text("What it would cost to try what is open:", style="bold"))
    for trial in waiting:
        cost = "minutes of timing, no training" if trial.trial.timed else str(trial.cost)
        console().print(Text(f"  {trial.trial.command}: {cost}"), soft_wrap=True)
    for trial in trials:
        if trial.trouble:
            console().print(Text(printable(f"Not read: {trial.trial.study}: {trial.trouble}")), soft_wrap=True)
    if output is not None:
        console().print(f"\nPage: {output}", soft_wrap=True)
