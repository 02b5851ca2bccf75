"""`fairtune suite`: several studies of the same arms, run in turn, and one verdict per arm over tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtune.cli.command import (
    FAILED_RUN,
    AllowPlugins,
    AsJson,
    Force,
    Runs,
    console,
    print_json,
    print_note,
    reading_study,
    report_errors,
)
from fairtune.core.errors import FairtuneError
from fairtune.core.files import parse_json
from fairtune.core.stages import stage
from fairtune.monitor.stage_view import show_stages

if TYPE_CHECKING:
    from fairtune.study.suite_file import Suite, SuiteStudy

SuiteFileName = Annotated[Path, typer.Argument(metavar="FILE", help="The suite file.", show_default=False)]
SuiteProfile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Use one of the suite's profiles.")]
ForAll = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a field of every study, such as seeds=3; may be repeated."),
]
OnlyPlan = Annotated[bool, typer.Option("--plan", help="Show the studies and their runs without running them.")]
OnlyReport = Annotated[bool, typer.Option("--report", help="Run nothing: only say what the runs on disk support.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FOLDER", help="Write the page there, not into RUNS/suites/NAME."),
]


@report_errors
def suite(
    file: SuiteFileName,
    overrides: ForAll = None,
    profile: SuiteProfile = None,
    only_plan: OnlyPlan = False,
    only_report: OnlyReport = False,
    output: Output = None,
    runs: Runs = Path("runs"),
    force: Force = False,
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Run several studies of the same arms in turn, then give one verdict per arm over tasks (HTML, Markdown, JSON).

    Finished runs are kept; a study that cannot be run is named and does not stop the others.
    """
    from fairtune.study.suite_file import load_suite

    if only_plan and only_report:
        raise FairtuneError("--plan shows what would be run, --report what was; leave out one of the two.")
    with reading_study(allow_plugins):
        found = load_suite(file, overrides or [], profile)
    if only_plan:
        _show_plan(found, as_json, force)
        return
    troubles: dict[str, str] = {}
    failed = False
    if not only_report:
        with show_stages():
            with stage("putting the list of studies on record"):
                from fairtune.api import register_suite

                register_suite(found, runs)
            for place, one in enumerate(found.studies, start=1):
                print_note(f"fairtune: study {place} of {len(found.studies)}: {one.study.study}")
                try:
                    failed |= _run(one, runs, force)
                except FairtuneError as error:
                    troubles[one.study.study] = " ".join(str(error).split())
                    print_note(f"fairtune: {one.study.study} cannot be run: {error}")
    show_suite(found, runs, output, as_json, troubles)
    if failed or troubles:
        raise typer.Exit(FAILED_RUN)


def show_suite(
    found: Suite, runs: Path, output: Path | None, as_json: bool, troubles: dict[str, str] | None = None
) -> None:
    """Write the suite's page, then show its table or its JSON."""
    from fairtune.api import suite_verdict  # scipy and matplotlib: seconds that `--help` need not wait for
    from fairtune.ledger.studies import suite_folder
    from fairtune.report.suite import suite_table, write_suite

    verdict = suite_verdict(found, runs, troubles)
    written = write_suite(verdict, output or suite_folder(runs, found.name), runs)
    if as_json:
        print_json(parse_json(written["json"].read_bytes()))
        return
    console().print(suite_table(verdict))
    console().print(f"\nSuite: {written['html']}", soft_wrap=True)


def _run(one: SuiteStudy, runs: Path, force: bool) -> bool:
    """Run one study as `fairtune run` does, and write its report; whether a run of it failed."""
    from fairtune.cli.run import perform_study, tell_failures
    from fairtune.study.study_file import load_checked

    with stage(f"reading the study {one.study.study}"):
        study = load_checked(one.source)
    outcome = perform_study(study, runs, one.source.label, force=force)
    with stage("writing the report"):
        from fairtune.analysis.results import load_results
        from fairtune.report.writer import write_report

        write_report(load_results(runs, study.study))
    tell_failures(outcome, study.study)
    return bool(outcome.failed or outcome.damaged)


@dataclass(frozen=True)
class PlannedCell:
    """A study of a suite before it is run.

    Args:
        runs: that are reported; trials come before them.
        steps: optimizer steps of all of them; None where it cannot be planned here.
        trouble: why it cannot be run here.
    """

    study: str
    file: str
    arms: tuple[str, ...]
    seeds: int
    tuned: bool
    runs: int
    steps: int | None = None
    trouble: str | None = None


def _plan(one: SuiteStudy, force: bool) -> PlannedCell:
    """A study as it would be run; one whose data are not here says that instead."""
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_checked

    study = one.study
    count = len(study.arms) * len(study.seeds)
    cell = PlannedCell(
        study.study, one.source.label, tuple(study.arms), len(study.seeds), study.tune is not None, count
    )
    try:
        plan = make_plan(load_checked(one.source), force)
    except FairtuneError as error:
        return replace(cell, trouble=" ".join(str(error).split()))
    return replace(cell, runs=len(plan.runs), steps=sum(run.steps for run in plan.runs))


def _show_plan(found: Suite, as_json: bool, force: bool) -> None:
    """Say what each study would run."""
    from rich.table import Table
    from rich.text import Text

    with show_stages(lines=False):
        cells = [_plan(one, force) for one in found.studies]
    if as_json:
        print_json({"suite": found.name, "reference": found.reference, "studies": [asdict(cell) for cell in cells]})
        return
    total = sum(cell.runs for cell in cells if cell.trouble is None)
    console().print(Text.assemble((found.name, "bold"), f"  {len(cells)} studies, {total} runs that can be made here"))
    made = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("study", "arms", "seeds", "runs", "steps"):
        made.add_column(head, justify="left" if head == "study" else "right")
    for cell in cells:
        steps = "-" if cell.steps is None else f"{cell.steps:,}"
        made.add_row(Text(cell.study), str(len(cell.arms)), str(cell.seeds), str(cell.runs), steps)
    console().print(made)
    if any(cell.tuned for cell in cells):
        console().print("\nTrials of `tune` come before these runs; `fairtune plan` of a study counts them.")
    for cell in cells:
        if cell.trouble:
            console().print(Text(f"\n{cell.study} cannot be run here: {cell.trouble}"), soft_wrap=True)
