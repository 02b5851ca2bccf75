"""`fairtune compare`: studies side by side, or two runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import AsJson, Runs, console, print_json, report_errors
from fairtune.core.errors import FairtuneError
from fairtune.core.files import parse_json
from fairtune.ledger.folders import find_folder, find_study, is_run

RUN = re.compile(r"seed-\d+/?$")

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="A B",
        help="Studies, by name or folder; or two runs, as STUDY/ARM/seed-N or folder.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FOLDER", help="Write the page of studies there, not into RUNS/compare/A--B."
    ),
]


@report_errors
def compare(names: Names, output: Output = None, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Put studies side by side (HTML, Markdown, JSON), or two runs: what differs, and by how much."""
    kinds = {is_run(name, runs) for name in names}
    for name in names:
        if RUN.search(name):
            find_folder(name, runs)  # whoever names a run that is not there hears which are
    if kinds == {True, False}:
        raise FairtuneError("these are runs and studies; compare two runs, or two studies or more.")
    if kinds == {True}:
        _show_runs(names, output, runs, as_json)
    else:
        show_studies(names, output, runs, as_json)


def show_studies(names: Sequence[str], output: Path | None, runs: Path, as_json: bool) -> None:
    """Write the comparison of studies, then show its table or its JSON."""
    from fairtune.analysis.results import load_results  # scipy: a second that `--help` need not wait for
    from fairtune.analysis.study_pairs import compare_studies
    from fairtune.report.study_pairs import default_folder, studies_table, write_studies

    studies = [load_results(*find_study(name, runs)) for name in names]
    found = compare_studies(studies)
    written = write_studies(found, output or default_folder(studies[0].runs_folder, found))
    if as_json:
        print_json(parse_json(written["json"].read_bytes()))
        return
    console().print(studies_table(found))
    console().print(f"\nComparison: {written['html']}", soft_wrap=True)


def _show_runs(names: Sequence[str], output: Path | None, runs: Path, as_json: bool) -> None:
    from fairtune.analysis.run_pairs import compare_runs
    from fairtune.report.run_pairs import run_pair_json, run_pair_table

    if len(names) != 2:
        raise FairtuneError(
            f"{len(names)} run{'s are' if len(names) > 1 else ' is'} named; runs are compared two at a time."
        )
    if output is not None:
        raise FairtuneError("-o is for studies; two runs are shown here, or with --json for other programs.")
    found = compare_runs(names[0], names[1], runs)
    if as_json:
        print_json(run_pair_json(found))
        return
    console().print(run_pair_table(found))
