"""`fairtune validate`: is this study or suite file right?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fairtune.cli.command import AllowPlugins, AsJson, console, print_json, reading_study, report_errors
from fairtune.core.numbers import plural
from fairtune.study.problems import Problem
from fairtune.study.study_file import check_file, find_absences
from fairtune.study.suite_file import Suite, check_suite, is_suite

File = Annotated[Path, typer.Argument(metavar="FILE", help="The study file, or a suite file.", show_default=False)]


@report_errors
def validate(file: File, allow_plugins: AllowPlugins = False, as_json: AsJson = False) -> None:
    """Check a study or suite file with its profiles; all problems at once.

    Looks at its data files (are they there, can they be read, do they have the columns and labels) and at the models it names, too.
    """
    if is_suite(file):
        with reading_study(allow_plugins):
            found, absent = check_suite(file), find_absences(file, check_suite)
        _show_suite(file, found, absent, as_json)
        return
    with reading_study(allow_plugins):
        study, absent = check_file(file), find_absences(file, check_file)
    if as_json:
        answer = {"valid": True, "study": study.study, "arms": list(study.arms), "profiles": list(study.profiles)}
        print_json({**answer, "not_here": [asdict(problem) for problem in absent]})
        return
    arms, seeds = len(study.arms), len(study.seeds)
    counts = f"{plural(arms, 'arm')} x {plural(seeds, 'seed')} = {plural(arms * seeds, 'run')}"
    _tell(file, counts, study.profiles, absent)


def _show_suite(file: Path, found: Suite, absent: Sequence[Problem], as_json: bool) -> None:
    names = [one.study.study for one in found.studies]
    if as_json:
        answer = {"valid": True, "suite": found.name, "studies": names, "profiles": list(found.profiles)}
        print_json({**answer, "not_here": [asdict(problem) for problem in absent]})
        return
    runs = sum(len(one.study.arms) * len(one.study.seeds) for one in found.studies)
    tasks = len({str(one.study.task) for one in found.studies})
    counts = f"A suite of {plural(len(names), 'study', 'studies')} on {plural(tasks, 'task')}, {plural(runs, 'run')}"
    _tell(file, counts, found.profiles, absent)


def _tell(file: Path, counts: str, profiles: Iterable[str], absent: Iterable[Problem]) -> None:
    others = ", ".join(profiles)
    console().print(f"{file}: valid. {counts}{f'; profiles: {others}' if others else ''}", soft_wrap=True)
    for problem in absent:
        console().print(f"not on this machine: {problem}", soft_wrap=True)
