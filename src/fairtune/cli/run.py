"""`fairtune run`: run what is not finished of a study, then say what it supports."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtune.cli.command import (
    FAILED_RUN,
    AllowPlugins,
    Arms,
    AsJson,
    Force,
    Overrides,
    Profile,
    Runs,
    StudyFile,
    choice_text,
    print_json,
    print_note,
    print_text,
    read_arms,
    reading_study,
    report_errors,
)
from fairtune.core.errors import FairtuneError
from fairtune.core.stages import stage
from fairtune.monitor.stage_view import show_stages

if TYPE_CHECKING:
    from fairtune.execution.study_run import StudyOutcome
    from fairtune.study.plan import Plan
    from fairtune.study.schema import Study

Reanalyse = Annotated[
    bool,
    typer.Option(
        "--reanalyse",
        help="Take verdicts by this plan although results were known when it was changed; the report says so.",
    ),
]
UntilDecided = Annotated[
    bool,
    typer.Option(
        "--until-decided",
        help="Run 3 seeds, then 5, 8, 12 and 20, until every comparison is settled; each look has to be surer, so the risk stays.",
    ),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="WHERE", help="Who performs the runs: local, slurm or ray; else as execution.on says."
    ),
]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="WHERE", help="With --on ray, the cluster: auto, or host:port of its head."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be run, or the script for Slurm, and do nothing else.")
]
Smoke = Annotated[
    bool,
    typer.Option(
        "--smoke",
        help="Only try each arm: two steps with a checkpoint between them. Nothing is recorded. Long studies begin with it anyway.",
    ),
]
MaxSeeds = Annotated[
    int | None, typer.Option("--max-seeds", metavar="N", help="With --until-decided, at most so many seeds (20).")
]


@report_errors
def run(
    file: StudyFile,
    overrides: Overrides = None,
    profile: Profile = None,
    arms: Arms = None,
    runs: Runs = Path("runs"),
    on: On = None,
    address: Address = None,
    dry_run: DryRun = False,
    smoke: Smoke = False,
    until_decided: UntilDecided = False,
    max_seeds: MaxSeeds = None,
    force: Force = False,
    reanalyse: Reanalyse = False,
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Run a study. Finished runs are kept, interrupted ones go on; Ctrl-C saves and stops."""
    with show_stages():
        with stage(
            f"reading the study {file.name}"
        ):  # and importing what reads it: seconds in which nobody should wonder
            from fairtune.study.study_file import load_checked

            chosen = read_arms(arms)
            where = [] if on is None else [f"execution.on={on}"]
            where += [] if address is None else [f"execution.ray.address={address}"]
            with reading_study(allow_plugins):
                study = load_checked(file, [*(overrides or []), *where], profile)
        if address is not None and study.execution.on != "ray":
            raise FairtuneError(
                f"--address is that of a Ray cluster, but the study runs on: {study.execution.on}; add --on ray."
            )
        if max_seeds is not None and not until_decided:
            raise FairtuneError(
                "--max-seeds is for --until-decided; the study's `seeds` say how many there are otherwise."
            )
        if until_decided and reanalyse:
            raise FairtuneError(
                "--until-decided plans its looks beforehand, so it cannot be a new analysis; leave out one of the two."
            )
        if until_decided and chosen is not None:
            from fairtune.api import LOOKS_TAKE_ALL

            raise FairtuneError(LOOKS_TAKE_ALL)
        if dry_run:
            _show_dry(study, runs, chosen, force)
            return
        if smoke:
            raise typer.Exit(_show_smoke(study, chosen, force, as_json))
        if sys.stderr.isatty():
            print_note(watch_hint(study.study, runs))
        looks = (lambda: _run_looks(study, runs, max_seeds, force)) if until_decided else None
        outcome = perform_study(study, runs, str(file), chosen, force, reanalyse, looks)
        with stage("writing the report"):
            from fairtune.cli.report import show_report
    show_report(runs, study.study, as_json)
    tell_failures(outcome)
    if outcome.failed or outcome.damaged:
        raise typer.Exit(FAILED_RUN)


def perform_study(
    study: Study,
    runs: Path,
    file: str,
    chosen: list[str] | None = None,
    force: bool = False,
    reanalyse: bool = False,
    looks: Callable[[], StudyOutcome] | None = None,
) -> StudyOutcome:
    """Run what is not finished of a study, send it to its trackers, and time its arms where it asks for that.

    Args:
        file: what the study is read from, for a command to type.
        looks: runs it look by look instead.

    Raises:
        typer.Exit: the disk is full.
    """
    from fairtune.ledger.folders import require_writable

    with _trackers(study, runs):
        if looks is not None:
            require_writable(runs)
            outcome = looks()
        else:
            outcome = _run_once(study, runs, chosen, force, reanalyse)
    if outcome.disk_full:
        print_note(
            "fairtune: the disk is full, so the study was stopped; free some space and run the same command again."
        )
        raise typer.Exit(FAILED_RUN)
    if study.timing is not None and study.execution.on != "local":
        from fairtune.api import time_on_a_node

        print_note(f"fairtune: {time_on_a_node(study.execution.on, file)}")
    elif study.timing is not None:
        _time(study, runs, force)
    return outcome


def tell_failures(outcome: StudyOutcome, study: str = "") -> None:
    """Name the runs that came to nothing.

    Args:
        study: set before each, where several are run.
    """
    begin = f"{study}/" if study else ""
    for name, reason in outcome.failed.items():
        print_note(f"fairtune: {begin}{name} failed: {reason}")
    for name, problem in outcome.damaged.items():
        print_note(f"fairtune: {begin}{name} is damaged: {problem}. Move its folder away to run it again.")


def _trackers(study: Study, runs: Path) -> AbstractContextManager[None]:
    """What keeps the study's trackers up to date while it runs."""
    if study.track is None:
        return nullcontext()
    from fairtune.monitor.trackers.background import track_study

    return track_study(study.track, runs, study.study, print_note)


def watch_hint(study: str, runs: Path) -> str:
    """How to see the study from another terminal, or after a connection broke."""
    where = "" if runs == Path("runs") else f" --runs {shlex.quote(str(runs))}"
    return (
        f"fairtune: from elsewhere, watch it with: fairtune watch {study}{where} (in the browser: fairtune dash{where})"
    )


def _run_once(study: Study, runs: Path, chosen: list[str] | None, force: bool, reanalysed: bool) -> StudyOutcome:
    """Run what is not finished, of all arms or of some."""
    from fairtune.execution.study_run import run_plan
    from fairtune.monitor.terminal import make_monitor

    plan = _plan(study, runs, chosen, force)
    arms = plan.choose(chosen)
    if some := choice_text(plan, arms):
        print_note(f"fairtune: {some}")
    return run_plan(plan, runs, make_monitor(), reanalysed=reanalysed, arms=arms)


def _plan(study: Study, runs: Path, chosen: list[str] | None, force: bool) -> Plan:
    """The plan of the reported runs; trials come first where the study has `tune`."""
    from fairtune.core.numbers import setting
    from fairtune.ledger.folders import require_writable
    from fairtune.monitor.terminal import make_monitor
    from fairtune.study.plan import make_plan

    with stage("planning its runs: data, model, controls"):
        plan = make_plan(study, force)
        plan.choose(chosen)  # a name that is none is refused before anything is tried
    require_writable(runs)
    if study.tune is None:
        return plan
    from fairtune.api import tune_plan  # scipy: a second that a study without trials need not wait for

    plan = tune_plan(study, runs, make_monitor, force)
    assert plan.tuned is not None, "it was tuned"
    for arm, choice in plan.tuned.choices.items():
        best = ", ".join(f"{name} {setting(value)}" for name, value in choice.point.items())
        print_note(f"fairtune: {arm}: {best or 'as given'}, the best of {plan.tuned.trials[arm]} trials on validation.")
    return plan


def _show_dry(study: Study, runs: Path, chosen: list[str] | None, force: bool) -> None:
    """Say what would be run, in its order, or print the script that Slurm would get."""
    from fairtune.study.plan import make_plan

    with stage("planning its runs: data, model, controls"):
        plan = make_plan(study, force)
        arms = plan.choose(chosen)
    if study.tune is not None:
        print_note("fairtune: the trials of `tune` come first, in the same way; this is what follows them.")
    if study.execution.on == "slurm":
        from fairtune.execution.executors.slurm import planned_script

        script = planned_script(plan, runs, arms)
        print_text("Every run is finished; nothing would be queued." if script is None else script.rstrip("\n"))
        return
    for run in plan.runs:
        if arms is None or run.arm in arms:
            print_text(f"{run.arm}/seed-{run.seed}")


def _show_smoke(study: Study, chosen: list[str] | None, force: bool, as_json: bool) -> int:
    """Try each arm for two steps and say which of them run; returns the exit code."""
    from fairtune.execution.smoke import smoke_arms
    from fairtune.study.plan import make_plan

    with stage("planning its runs: data, model, controls"):
        plan = make_plan(study, force)
    with stage("trying each arm for two steps"):
        found = smoke_arms(plan, plan.choose(chosen))
    if as_json:
        print_json(
            {one.arm: {"passed": one.reason is None, "seconds": one.seconds, "reason": one.reason} for one in found}
        )
    else:
        width = max((len(one.arm) for one in found), default=0)
        for one in found:
            print_text(
                f"{one.arm:{width}}  {f'ok, {one.seconds:.1f} s' if one.reason is None else f'FAILS: {one.reason}'}"
            )
    return FAILED_RUN if any(one.reason is not None for one in found) else 0


def _time(study: Study, runs: Path, force: bool) -> None:
    """Time the arms, as the study asks for; the study's results do not hang on it."""
    from fairtune.api import planned_study, time_if_wanted

    try:
        time_if_wanted(planned_study(study, runs, force), runs)
    except FairtuneError as error:
        print_note(f"fairtune: the arms could not be timed: {error}")


def _run_looks(study: Study, runs: Path, most: int | None, force: bool) -> StudyOutcome:
    """Run look after look, and say on the way where it stands."""
    from fairtune.analysis.looks import MOST
    from fairtune.api import run_looks
    from fairtune.execution.study_run import StudyOutcome
    from fairtune.monitor.terminal import make_monitor

    outcome = StudyOutcome()
    for n, outcome, settled in run_looks(study, runs, make_monitor, most or MOST, force):
        if not outcome.disk_full:
            state = "every comparison is settled" if settled else "not every comparison is settled"
            print_note(f"fairtune: look at {n} seeds: {state}.")
    return outcome
