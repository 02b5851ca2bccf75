"""Three lines of Python: run a study, get its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fairtune.analysis.looks import LOOKS, MOST
from fairtune.analysis.results import Results, load_results
from fairtune.core.errors import FairtuneError, LedgerError
from fairtune.execution.study_run import Monitor, StudyOutcome, run_plan
from fairtune.ledger.studies import read_study, study_folder
from fairtune.monitor.terminal import make_monitor
from fairtune.study.plan import make_plan
from fairtune.study.schema import Study
from fairtune.study.study_file import StudySource, load_study


def run_study(
    study: StudySource,
    runs: str | Path = "runs",
    overrides: Sequence[str] = (),
    profile: str | None = None,
    progress: bool = True,
    force: bool = False,
    reanalyse: bool = False,
    until_decided: bool = False,
    max_seeds: int = MOST,
) -> Results:
    """Run what is not finished of a study, and return its results.

    Args:
        study: a YAML file, or the same as a mapping.
        runs: the folder that keeps the runs.
        overrides: changes of the form `a.b=c`.
        progress: show progress in the terminal.
        force: run it although the plan is refused; the report says so.
        reanalyse: take verdicts by this plan although results were known when it was changed; the report says so.
        until_decided: add seeds, look by look, until every comparison is settled or there are `max_seeds`.

    Raises:
        FairtuneError: the study, its data or its model cannot be used. A run that fails raises nothing: see `failures`.
        Stopped: Ctrl-C; what was done is saved, and the same call goes on.
    """
    loaded, folder = load_study(study, overrides, profile), Path(runs)
    if not until_decided:
        run_plan(make_plan(loaded, force), folder, make_monitor(quiet=not progress), reanalysed=reanalyse)
        return load_results(folder, loaded.study)
    for _ in run_looks(loaded, folder, lambda: make_monitor(quiet=not progress), max_seeds, force):
        pass
    return load_results(folder, loaded.study)


def run_looks(
    study: Study, runs: Path, make: Callable[[], Monitor], most: int = MOST, force: bool = False
) -> Iterator[tuple[int, StudyOutcome, bool]]:
    """Run a study with more and more seeds; after each look, its number of seeds, its outcome, and whether all is settled.

    Nothing more is run once it is, or once a run failed for want of disk.
    """
    if most < LOOKS[0]:
        raise FairtuneError(
            f"--max-seeds is {most}; the first look takes {LOOKS[0]} seeds, so it must be at least that."
        )
    for n in _looks_ahead(study, runs, most):
        plan = make_plan(study.model_copy(update={"seeds": seeds_up_to(study.seeds, n)}), force)
        outcome = run_plan(plan, runs, make(), until_decided=most)
        settled = not outcome.disk_full and load_results(runs, study.study).verdict().settled
        yield n, outcome, settled
        if settled or outcome.disk_full:
            return


def _looks_ahead(study: Study, runs: Path, most: int) -> list[int]:
    """Numbers of seeds at which verdicts will be taken; a study that has been begun goes on where it is."""
    try:
        begun = len(read_study(study_folder(runs, study.study))["seeds"])
    except (LedgerError, KeyError):
        begun = 0
    return [n for n in (*(look for look in LOOKS if look < most), most) if n >= begun] or [begun]


def seeds_up_to(seeds: Sequence[int], n: int) -> tuple[int, ...]:
    """The first n of a study's seeds; where it names fewer, the smallest numbers that it does not name follow."""
    others = (number for number in range(len(seeds) + n) if number not in set(seeds))
    return tuple([*seeds, *others][:n])
