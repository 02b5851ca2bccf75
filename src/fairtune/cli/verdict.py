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
    from fairtune.analysis.study_claims import study_claims

    results = load_results(runs, study)
    found, claims = results.verdict(), study_claims(results)
    if as_json:
        answered = {"claims": [one.as_json() for one in claims]} if claims else {}
        print_json({**found.as_json(), **answered})
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
    for one in claims:
        console().print(
            Text.assemble((printable(f"Claim, {one.claim}"), "bold"), printable(str(one).removeprefix(str(one.claim))))
        )
