"""Three lines of Python: run a study, get its results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairtune.analysis.results import Results, load_results
from fairtune.execution.study_run import run_plan
from fairtune.monitor.terminal import make_monitor
from fairtune.study.plan import make_plan
from fairtune.study.study_file import StudySource, load_study


def run_study(
    study: StudySource,
    runs: str | Path = "runs",
    overrides: Sequence[str] = (),
    profile: str | None = None,
    progress: bool = True,
) -> Results:
    """Run what is not finished of a study, and return its results.

    Args:
        study: a YAML file, or the same as a mapping.
        runs: the folder that keeps the runs.
        overrides: changes of the form `a.b=c`.
        progress: show progress in the terminal.

    Raises:
        FairtuneError: the study, its data or its model cannot be used. A run that fails raises nothing: see `failures`.
        Stopped: Ctrl-C; what was done is saved, and the same call goes on.
    """
    plan = make_plan(load_study(study, overrides, profile))
    run_plan(plan, Path(runs), make_monitor(quiet=not progress))
    return load_results(runs, plan.study.study)
