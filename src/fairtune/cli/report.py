"""`fairtune report`: the report of a study, from its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import (
    Arms,
    AsJson,
    Runs,
    console,
    print_json,
    print_note,
    read_arms,
    report_errors,
)
from fairtune.cli.compare import show_studies
from fairtune.core.errors import FairtuneError
from fairtune.core.files import parse_json
from fairtune.ledger.folders import find_study

USUAL_FORMATS = "html,md,json"
SOME_ARMS = "some-arms"
"""Where, beside the whole report, one of some arms is written."""
StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study.", show_default=False)]
StudyNames = Annotated[
    list[str],
    typer.Argument(
        metavar="STUDY", help="Name or folder of the study; several are put side by side.", show_default=False
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Write it again whenever runs go on, until Ctrl-C.")]
Formats = Annotated[
    str, typer.Option("--format", metavar="LIST", help="Formats, with commas between them: html, md, json, latex, csv.")
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FOLDER", help="Write there, not into the study's own folder `report`."),
]


@report_errors
def report(
    studies: StudyNames,
    formats: Formats = USUAL_FORMATS,
    output: Output = None,
    arms: Arms = None,
    watch: Watch = False,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Write a study's report (HTML, Markdown, JSON) and show its table."""
    if watch and (len(studies) > 1 or as_json):
        raise FairtuneError(f"--watch is for one study{', without --json' if as_json else ''}; watch each by itself.")
    if arms is not None and (watch or len(studies) > 1):
        raise FairtuneError("--arms is for the report of one study, without --watch; leave it out.")
    if len(studies) > 1:
        if formats != USUAL_FORMATS:
            raise FairtuneError("--format is for one study; several are written as HTML, Markdown and JSON.")
        show_studies(studies, output, runs, as_json)
        return
    from fairtune.report.writer import exporters_of

    exporters_of(formats)  # a wrong name is told before anything is read
    home, study = find_study(studies[0], runs)
    if watch:
        watch_report(home, study, formats, output)
    else:
        show_report(home, study, as_json, formats, output, read_arms(arms))


def _tell(line: str) -> None:
    console().print(line, soft_wrap=True)


def watch_report(runs: Path, study: str, formats: str, output: Path | None) -> None:
    """Write the report again and again, until it is stopped."""
    from fairtune.report.watch import StudyWatch
    from fairtune.report.writer import exporters_of

    print_note(f"Watching {runs / study}; Ctrl-C ends it.")
    watched = StudyWatch(runs, study, tuple(exporters_of(formats)), output, _tell)
    try:
        watched.keep_writing()
    except KeyboardInterrupt:
        print_note("\nNo longer watched; the newest report stays.")


def show_report(
    runs: Path,
    study: str,
    as_json: bool,
    formats: str | Sequence[str] = USUAL_FORMATS,
    output: Path | None = None,
    arms: Sequence[str] | None = None,
) -> None:
    """Write the report, then show its table or its JSON.

    Args:
        arms: that are shown, with those they are compared with; such a report never takes the place of the whole one.
    """
    from fairtune.analysis.results import load_results  # scipy and matplotlib: seconds that `--help` need not wait for
    from fairtune.analysis.selected_arms import only_arms
    from fairtune.report.terminal import verdict_table
    from fairtune.report.writer import FOLDER, USUAL, exporters_of, write_report

    wanted = list(exporters_of(formats))  # a wrong name is told before anything is read
    results = only_arms(load_results(runs, study), arms)
    if output is None and results.whole is not results:
        output = results.folder / FOLDER / SOME_ARMS
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
