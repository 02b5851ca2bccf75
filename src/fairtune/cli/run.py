"""`fairtune run`: run what is not finished of a study, then say what it supports."""

from __future__ import annotations

from pathlib import Path

import typer

from fairtune.cli.command import (
    FAILED_RUN,
    AsJson,
    Overrides,
    Profile,
    Runs,
    StudyFile,
    print_note,
    report_errors,
)
from fairtune.cli.report import show_report
from fairtune.execution.study_run import run_plan
from fairtune.ledger.studies import require_writable
from fairtune.monitor.terminal import make_monitor
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study


@report_errors
def run(
    file: StudyFile,
    overrides: Overrides = None,
    profile: Profile = None,
    runs: Runs = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Run a study. Finished runs are kept, interrupted ones go on; Ctrl-C saves and stops."""
    plan = make_plan(load_study(file, overrides or [], profile))
    require_writable(runs)
    outcome = run_plan(plan, runs, make_monitor())
    if outcome.disk_full:
        print_note(
            "fairtune: the disk is full, so the study was stopped; free some space and run the same command again."
        )
        raise typer.Exit(FAILED_RUN)
    show_report(runs, plan.study.study, as_json)
    for name, reason in outcome.failed.items():
        print_note(f"fairtune: {name} failed: {reason}")
    for name, problem in outcome.damaged.items():
        print_note(f"fairtune: {name} is damaged: {problem}. Move its folder away to run it again.")
    if outcome.failed or outcome.damaged:
        raise typer.Exit(FAILED_RUN)
