"""`fairtune verdict`: what a study supports, as a page to read aloud."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from fairtune.cli.command import AsJson, Runs, console, print_json, report_errors
from fairtune.cli.report import StudyName
from fairtune.core.printable import printable


@report_errors
def verdict(study: StudyName, runs: Runs = Path("runs"), as_json: AsJson = False) -> None:
    """Say what a study supports: what was planned and changed, what to mind, and a finding for every arm."""
    from fairtune.analysis.results import load_results  # scipy: a second that `--help` need not wait for

    found = load_results(runs, study).verdict()
    if as_json:
        print_json(found.as_json())
        return
    for line in str(found).splitlines():
        name, colon, rest = line.partition(": ")
        further = {f"{metric.title}, {finding.arm}" for metric in found.further for finding in metric.findings}
        heads = {finding.arm for finding in found.findings} | further | {"Warning", "Note", "Refusal (forced)"}
        shown = (
            Text.assemble((printable(name), "bold"), printable(f"{colon}{rest}"))
            if name in heads
            else Text(printable(line))
        )
        console().print(shown)
