"""`fairtune report`: the report of a study, from its ledger."""

from __future__ import annotations

from collections.abc import Sequence
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
Formats = Annotated[
    str, typer.Option("--format", metavar="LIST", help="Formats, with commas between them: html, md, json, latex, csv.")
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FOLDER", help="Write there, not into the study's own folder `report`."),
]


@report_errors
def report(
    study: StudyName,
    formats: Formats = "html,md,json",
    output: Output = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Write a study's report (HTML, Markdown, JSON) and show its table."""
    show_report(runs, study, as_json, formats, output)


def show_report(
    runs: Path, study: str, as_json: bool, formats: str | Sequence[str] = "html,md,json", output: Path | None = None
) -> None:
    """Write the report, then show its table or its JSON."""
    from fairtune.analysis.results import load_results  # scipy and matplotlib: seconds that `--help` need not wait for
    from fairtune.report.terminal import verdict_table
    from fairtune.report.writer import USUAL, exporters_of, write_report

    wanted = list(exporters_of(formats))  # a wrong name is told before anything is read
    results = load_results(runs, study)
    written = write_report(results, [*wanted, "json"] if as_json and "json" not in wanted else wanted, output)
    if as_json:
        print_json(parse_json(written["json"].read_bytes()))
        return
    console().print(verdict_table(results))
    page = written.get("html")
    others = [
        path for name, path in written.items() if page is None or name not in USUAL
    ]  # the usual ones lie beside it
    lines = "\n        ".join(map(str, others if page is None else [page, *others]))
    console().print(f"\nReport: {lines}", soft_wrap=True)
