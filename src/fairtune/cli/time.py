"""`fairtune time`: time a study's arms against each other, or check from operations alone whether a stated speed-up can be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtune.cli.command import (
    INTERRUPTED,
    AllowPlugins,
    Arms,
    AsJson,
    Force,
    Overrides,
    Profile,
    Runs,
    console,
    print_json,
    print_note,
    read_arms,
    reading_study,
    report_errors,
)
from fairtune.core.errors import FairtuneError, Stopped
from fairtune.core.stages import stage
from fairtune.monitor.stage_view import show_stages

if TYPE_CHECKING:
    from fairtune.settings.sections import Timing

File = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The study file; not with --check.", show_default=False)
]
Minutes = Annotated[float, typer.Option("--minutes", metavar="N", help="Measure for at most so long.")]
Precision = Annotated[
    str, typer.Option("--precision", metavar="SHARE", help="Stop once every ratio is known to within this share.")
]
Check = Annotated[
    str | None,
    typer.Option(
        "--check", metavar="SPEEDUP", help="A stated speed-up, such as 1.3x: is it possible? Needs --model and --arm."
    ),
]
Model = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="With --check: the model.")]
ArmOption = Annotated[
    str | None,
    typer.Option("--arm", metavar="ARM", help="With --check: a named arm, or a method with settings in YAML."),
]
SPEEDUP = re.compile(r"([0-9]+(?:\.[0-9]+)?) *[x×]?")
PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?) *%")


@report_errors
def time(
    file: File = None,
    arms: Arms = None,
    minutes: Minutes = 3.0,
    precision: Precision = "1%",
    overrides: Overrides = None,
    profile: Profile = None,
    runs: Runs = Path("runs"),
    force: Force = False,
    check: Check = None,
    model: Model = None,
    arm: ArmOption = None,
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Time the arms of a study against each other, in turns in one process, with an A/A; nothing has to be trained before."""
    if check is not None:
        if file is not None:
            raise FairtuneError("--check counts operations and runs no study; leave the file out.")
        _check(check, model, arm, as_json)
        return
    if file is None:
        raise FairtuneError(
            "give the file of a study, or --check with --model and --arm: fairtune time --check 1.3x --arm oelm-freeze "
            "--model minilm"
        )
    if model is not None or arm is not None:
        raise FairtuneError("--model and --arm are for --check; choose arms of a study with --arms.")
    with show_stages():
        with stage(f"reading the study {file.name}"):  # and importing what reads it
            wanted = _timing(minutes, precision)
            from fairtune.analysis.timing_file import comparison_json
            from fairtune.api import planned_study, time_plan
            from fairtune.report.timing_view import timing_view
            from fairtune.study.study_file import load_checked

            with reading_study(allow_plugins):
                study = load_checked(file, overrides or [], profile)
        with stage("planning its runs: data, model, controls"):
            plan = planned_study(study, runs, force)
    try:
        found = time_plan(plan, runs, wanted, read_arms(arms) or ())
    except Stopped:
        print_note("\nfairtune: stopped before enough was measured; nothing was kept.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(comparison_json(found))
        return
    console().print(timing_view(found, wanted.precision))


def _timing(minutes: float, precision: str) -> Timing:
    from fairtune.settings.sections import Timing

    try:
        return Timing(minutes=minutes, precision=precision)
    except ValueError as error:
        wrong = "--minutes" if "minutes" in str(error) else "--precision"
        allowed = (
            "a number above 0, at most 1440" if wrong == "--minutes" else "a share such as 1% or 0.01, at most 50%"
        )
        value = minutes if wrong == "--minutes" else precision
        raise FairtuneError(f"{wrong} is {value}; give {allowed}.") from None


def _check(stated: str, model: str | None, arm: str | None, as_json: bool) -> None:
    speedup = _read_speedup(stated)
    if model is None or arm is None:
        missing = " and ".join(name for name, value in (("--model", model), ("--arm", arm)) if value is None)
        raise FairtuneError(f"--check needs {missing}: of what model, trained how, is the speed-up stated?")
    from fairtune.analysis.step_bounds import ClaimCheck
    from fairtune.cli.options import read_methods
    from fairtune.study.problems import StudyError

    try:
        methods = read_methods([arm])
    except StudyError as error:
        raise FairtuneError(str(error).replace("--method ", "--arm ")) from None
    from fairtune.execution.claim_check import count_step

    counted = count_step(model, methods)
    found = ClaimCheck(
        model=model, arm=arm, stated=speedup, before=counted.before, after=counted.after * counted.passes,
        frozen=counted.frozen, counted_on=f"{counted.config} with texts of {counted.length} tokens",
    )  # fmt: skip
    if as_json:
        print_json(found.as_json())
        return
    for line in found.lines():
        console().print(line, highlight=False)


def _read_speedup(text: str) -> float:
    found = SPEEDUP.fullmatch(text.strip())
    if found is not None and float(found[1]) <= 1:
        raise FairtuneError(f"--check is {text!r}, which is no speed-up; give how many times as fast, such as 1.3x.")
    if found is None or float(found[1]) > 1000:
        share = PERCENT.fullmatch(text.strip())
        hint = ""
        if share is not None and float(share[1]) < 100:
            hint = f" A saving of {share[1]} % of the time is {1 / (1 - float(share[1]) / 100):.2f}x."
        raise FairtuneError(f"--check is {text!r}; give how many times as fast, such as 1.3x.{hint}")
    return float(found[1])
