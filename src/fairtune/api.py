"""Three lines of Python: run a study, get its results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from fairtune.analysis.looks import LOOKS, MOST
from fairtune.analysis.results import load_results
from fairtune.analysis.suite_cells import PlannedStudy
from fairtune.analysis.suite_verdict import SuiteVerdict, judge_suite
from fairtune.analysis.timings import StudyTiming, judge_times
from fairtune.core.errors import FairtuneError, LedgerError, one_of
from fairtune.core.plugins import plugins_allowed
from fairtune.execution.stopwatch.groups import group_arms
from fairtune.execution.stopwatch.session import Record, time_arms
from fairtune.execution.study_run import Monitor, StudyOutcome, run_plan
from fairtune.execution.tuner import find_tuned, tune_study
from fairtune.ledger.folders import lock, require_writable
from fairtune.ledger.studies import read_study, record_suite
from fairtune.ledger.timings import read_sessions, write_session
from fairtune.models.presets import PRESETS
from fairtune.monitor.stage_view import show_stages
from fairtune.monitor.terminal import make_monitor
from fairtune.monitor.timing_line import make_timing_monitor
from fairtune.monitor.trackers.background import track_study
from fairtune.report.study_results import StudyResults
from fairtune.settings.sections import Timing
from fairtune.study.plan import Plan, make_plan
from fairtune.study.schema import Study
from fairtune.study.study_file import StudySource, load_study
from fairtune.study.suite_file import Suite, SuiteStudy, load_suite, model_name, task_name
from fairtune.tasks.corpora import is_text
from fairtune.tasks.descriptions import descriptions

LOOKS_TAKE_ALL = "--until-decided goes on until every comparison is settled, which needs all arms; leave out --arms."


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
    arms: Sequence[str] | None = None,
    allow_plugins: bool = False,
) -> StudyResults:
    """Run what is not finished of a study, and return its results.

    Args:
        study: a YAML file, or the same as a mapping.
        runs: the folder that keeps the runs.
        overrides: changes of the form `a.b=c`.
        progress: show progress in the terminal.
        force: run it although the plan is refused; the report says so.
        reanalyse: take verdicts by this plan although results were known when it was changed; the report says so.
        until_decided: add seeds, look by look, until every comparison is settled or there are `max_seeds`.
        arms: run these alone, and those they are compared with; the plan, and the family of its comparisons, stay whole.
        allow_plugins: execute the modules that it names under `plugins`, now and from now on; read them first.

    Raises:
        FairtuneError: the study, its data or its model cannot be used. A run that fails raises nothing: see `failures`.
        Stopped: Ctrl-C; what was done is saved, and the same call goes on.
    """
    loaded, folder = load_study(study, overrides, profile, allow_plugins), Path(runs)

    def monitor() -> Monitor:
        return make_monitor(quiet=not progress)

    if until_decided and arms is not None:
        raise FairtuneError(LOOKS_TAKE_ALL)
    with show_stages(quiet=not progress), track_study(loaded.track, folder, loaded.study, _warn):
        if not until_decided:
            plan = tune_plan(loaded, folder, monitor, force)
            run_plan(plan, folder, monitor(), reanalysed=reanalyse, arms=plan.choose(arms))
        else:
            for _ in run_looks(loaded, folder, monitor, max_seeds, force):
                pass
            plan = planned_study(loaded, folder, force)
        try:
            if loaded.timing is not None and loaded.execution.on != "local":
                warnings.warn(time_on_a_node(loaded.execution.on), stacklevel=2)
            else:
                time_if_wanted(plan, folder, progress)
        except FairtuneError as error:
            warnings.warn(f"the arms could not be timed: {error}", stacklevel=2)
    return StudyResults(folder, loaded.study)


def run_suite(
    suite: StudySource,
    runs: str | Path = "runs",
    overrides: Sequence[str] = (),
    profile: str | None = None,
    progress: bool = True,
    force: bool = False,
    allow_plugins: bool = False,
) -> SuiteVerdict:
    """Run what is not finished of each study of a suite, and return what all of them together support.

    A study that cannot be run, since its data are missing for one, is named in the result and does not stop the others.

    Args:
        suite: a YAML file, or the same as a mapping.
        overrides: changes of the form `a.b=c` to every study.
        profile: the name of one of the suite's profiles.
        allow_plugins: execute the modules that its studies name under `plugins`, now and from now on; read them first.

    Raises:
        FairtuneError: the suite or one of its study files cannot be used.
        Stopped: Ctrl-C; what was done is saved, and the same call goes on.
    """
    with plugins_allowed(allow_plugins):
        loaded = load_suite(suite, overrides, profile)
    register_suite(loaded, Path(runs))
    troubles: dict[str, str] = {}
    for one in loaded.studies:
        try:
            run_study(one.source, runs, progress=progress, force=force)
        except FairtuneError as error:
            troubles[one.study.study] = str(error)
    return suite_verdict(loaded, Path(runs), troubles)


def load_suite_results(
    suite: StudySource, runs: str | Path = "runs", overrides: Sequence[str] = (), profile: str | None = None
) -> SuiteVerdict:
    """What the runs on disk support about the arms of a suite; nothing is run."""
    return suite_verdict(load_suite(suite, overrides, profile), Path(runs))


def register_suite(suite: Suite, runs: Path) -> None:
    """Put on record, before anything of it is run, of which studies a suite is made.

    Raises:
        LedgerError: that cannot be written, or what is on record is damaged.
    """
    require_writable(runs)
    record_suite(runs, suite.name, [asdict(one) for one in _planned_studies(suite, {})])


def suite_verdict(suite: Suite, runs: Path, troubles: Mapping[str, str] | None = None) -> SuiteVerdict:
    """The verdict over the tasks of a suite.

    Args:
        troubles: by study, why it could not be run just now.
    """
    return judge_suite(suite.name, _planned_studies(suite, troubles or {}), runs)


def _planned_studies(suite: Suite, troubles: Mapping[str, str]) -> list[PlannedStudy]:
    metrics = {task.name: task.metric for task in descriptions()}
    return [_planned_study(one, metrics, troubles.get(one.study.study, "")) for one in suite.studies]


def _planned_study(one: SuiteStudy, metrics: Mapping[str, str], trouble: str) -> PlannedStudy:
    study = one.study
    own = metrics.get(task_name(study), "accuracy") if isinstance(study.task, str) else study.task.metric
    text = is_text(study.task)
    usual = "perplexity" if text else own
    scratch = model_name(study).partition("(")[0] in PRESETS
    group = f"{'generation' if text else 'classification'}, {'from scratch' if scratch else 'fine-tuned'}"
    return PlannedStudy(
        study.study,
        task_name(study),
        model_name(study),
        study.metric or usual,
        one.group or group,
        {arm: study.learner(arm) is not None for arm in study.arms},
        study.compare.to,
        study.compare.confidence,
        len(study.seeds),
        trouble,
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def tune_plan(study: Study, runs: Path, make: Callable[[], Monitor], force: bool = False) -> Plan:
    """The plan of a study's reported runs; one that has `tune` is tuned first, as far as its trials are not done.

    Raises:
        RefusedPlan: its results would be worthless; said before anything is tried.
        FairtuneError: it cannot be planned, or not be tuned.
    """
    plan = make_plan(study, force)
    if study.tune is None:
        return plan
    require_writable(runs)
    return make_plan(study, force, tune_study(study, plan.task.metric, runs, make))


def planned_study(study: Study, runs: Path, force: bool = False) -> Plan:
    """The plan of a study's reported runs with the settings that its trials chose; as given where they are not done."""
    plan = make_plan(study, force)
    tuned = None if study.tune is None else find_tuned(study, plan.task.metric, runs)
    return plan if tuned is None else make_plan(study, force, tuned)


def time_study(
    study: StudySource,
    runs: str | Path = "runs",
    arms: Sequence[str] = (),
    minutes: float = 3,
    precision: float = 0.01,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    progress: bool = True,
    force: bool = False,
    allow_plugins: bool = False,
) -> StudyTiming:
    """Time the arms of a study against each other: all in one process, stepped in turns. Nothing needs to be trained before.

    Args:
        study: a YAML file, or the same as a mapping.
        runs: the folder that keeps the sessions, beside the study's runs.
        arms: to time, with the arms they are compared with; none is all.
        minutes: at most so long; preparing the arms comes on top.
        precision: stop once every ratio is known to within this share.
        allow_plugins: execute the modules that it names under `plugins`, now and from now on; read them first.

    Raises:
        FairtuneError: the study cannot be used, or an arm of it cannot be timed.
    """
    plan = planned_study(load_study(study, overrides, profile, allow_plugins), Path(runs), force)
    return time_plan(plan, Path(runs), Timing(minutes=minutes, precision=precision), arms, progress)


def time_plan(plan: Plan, runs: Path, timing: Timing, arms: Sequence[str] = (), progress: bool = True) -> StudyTiming:
    """Time some arms of a plan, or all, and keep the session; returns what all sessions on this machine show together."""
    require_writable(runs)
    home, planned, chosen = runs / plan.study.study, plan.as_json(), timed_arms(plan, arms)
    groups = group_arms(plan, chosen)
    monitor = make_timing_monitor(timing, quiet=not progress)

    def enough(record: Record) -> bool:
        found = judge_times(planned, [record])
        if found is not None:
            monitor.precision = found.precision
        return found is not None and found.precision <= timing.precision

    with lock(
        home / ".lock", f"study '{plan.study.study}' is being run by another process; time it when that is done."
    ):
        try:
            for group in groups:
                record = time_arms(plan, group, 60 * timing.minutes / len(groups), enough, monitor.show)
                write_session(home, {**record, "asked": timing.model_dump(mode="json")})
        finally:
            monitor.end()
    found = judge_times(planned, read_sessions(home)[0], chosen)
    assert found is not None, "a session was just written"
    return found


def time_if_wanted(plan: Plan, runs: Path, progress: bool = True) -> StudyTiming | None:
    """Time a study whose file says so, once its runs are finished, unless all its arms have been timed."""
    wanted, home = plan.study.timing, runs / plan.study.study
    if wanted is None:
        return None
    finished = {run.arm for run in load_results(runs, plan.study.study).runs if run.status == "finished"}
    known = judge_times(plan.as_json(), read_sessions(home)[0])
    arms = [arm for arm in plan.trained if arm in finished]
    if plan.study.compare.to not in arms or len(arms) < 2 or (known is not None and set(arms) <= set(known.arms)):
        return known
    return time_plan(plan, runs, wanted, arms, progress)


def time_on_a_node(where: str, file: str = "FILE") -> str:
    """How to time a study whose runs are performed on a cluster: a comparison needs one machine, and not this one."""
    begin = "srun " if where == "slurm" else ""
    return f"its runs were performed on {where}, so its arms are not timed here; on a node, run: {begin}fairtune time {file}"


def timed_arms(plan: Plan, arms: Sequence[str]) -> list[str]:
    """The arms to time, in the study's order: those that are named, those they are compared with, and the reference.

    Raises:
        FairtuneError: there is no such arm.
    """
    chosen, reference = [arm for arm in plan.choose(arms) if arm in plan.trained], plan.reference
    if not set(arms or plan.trained) & set(chosen):
        raise FairtuneError(
            f"{one_of(arms or plan.study.arms)}: simple baselines are fitted at once, so they have no steps to be timed; name an "
            "arm that is trained."
        )
    if reference not in chosen:
        raise FairtuneError(
            f"{reference}, which the others are compared to, has no steps to be timed; compare to an arm that is trained, with "
            "`--set compare.to=NAME`."
        )
    return chosen


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
        reserved = study.tune.seeds if study.tune is not None else ()
        seeds = seeds_up_to(study.seeds, n, reserved)
        plan = tune_plan(study.model_copy(update={"seeds": seeds}), runs, make, force)
        outcome = run_plan(plan, runs, make(), until_decided=most)
        settled = not outcome.disk_full and load_results(runs, study.study).verdict().settled
        yield n, outcome, settled
        if settled or outcome.disk_full:
            return


def _looks_ahead(study: Study, runs: Path, most: int) -> list[int]:
    """Numbers of seeds at which verdicts will be taken; a study that has been begun goes on where it is."""
    try:
        begun = len(read_study(runs / study.study)["seeds"])
    except (LedgerError, KeyError):
        begun = 0
    return [n for n in (*(look for look in LOOKS if look < most), most) if n >= begun] or [begun]


def seeds_up_to(seeds: Sequence[int], n: int, reserved: Sequence[int] = ()) -> tuple[int, ...]:
    """The first n of a study's seeds; where it names fewer, the smallest numbers that it does not name follow.

    Args:
        reserved: numbers that are not taken, since trials have them.
    """
    others = (number for number in range(len(seeds) + len(reserved) + n) if number not in {*seeds, *reserved})
    return tuple([*seeds, *others][:n])
