"""`fairtune report`: the report of a study, from its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import (
    AsJson,
    Runs,
    console,
    print_json,
    report_errors,
)
from fairtune.core.files import parse_json

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study.", show_default=False)]


@report_errors
def report(study: StudyName, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Write a study's report (HTML, Markdown, JSON) and show its table."""
    show_report(runs, study, as_json)


def show_report(runs: Path, study: str, as_json: bool) -> None:
    """Write the report, then show its table or its JSON."""
    from fairtune.analysis.results import load_results  # scipy and matplotlib: seconds that `--help` need not wait for
    from fairtune.report.terminal import verdict_table
    from fairtune.report.writer import write_report

    results = load_results(runs, study)
    written = write_report(results)
    if as_json:
        print_json(parse_json(written["json"].read_bytes()))
        return
    console().print(verdict_table(results))
    console().print(f"\nReport: {written['html']}", soft_wrap=True)
