"""How fairtune grows beyond one machine: thousands of planned runs, many workers on one ledger, and what an executor adds to a run.

    python benchmarks/scale.py runs --sizes 100x10 100x30 100x100
    python benchmarks/scale.py workers --workers 64 --kills 40
    python benchmarks/scale.py executors --on local slurm ray --runs 24 --sleep 0.5

`runs`: processor time and peak memory of each verb, in a process of its own, on ledgers made by hand; with each size, its ratio to
the smallest. `workers`: see `shared_ledger.py`. `executors`: real workers whose runs sleep (`sleeping/`); Slurm is started on this
machine for it (`tests/cluster/`), Ray where it is installed, and what is missing is said.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from growth import LedgerSize, measure, record_run

ROOT = Path(__file__).parents[1]
STUDY = "grown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    runs = parts.add_parser("runs", help="plan, status and report of thousands of runs")
    runs.add_argument("--sizes", nargs="+", default=["100x10", "100x30", "100x100"], help="ARMSxSEEDS, smallest first")
    runs.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the ledgers there, and use those that it has")
    workers = parts.add_parser("workers", help="many processes on one ledger")
    workers.add_argument("--workers", type=int, default=64)
    workers.add_argument("--size", default="20x50", help="ARMSxSEEDS")
    workers.add_argument("--kills", type=int, default=40)
    executors = parts.add_parser("executors", help="what an executor adds to a run")
    executors.add_argument("--on", nargs="+", default=["local", "slurm", "ray"], choices=["local", "slurm", "ray"])
    executors.add_argument("--runs", type=int, default=24, help="a multiple of 4")
    executors.add_argument("--sleep", type=float, default=0.5, help="seconds of each run")
    first = parts.add_parser("first", help="all that `fairtune run` does before the first run, in this process")
    first.add_argument("file", type=Path)
    first.add_argument("runs", type=Path)
    options = parser.parse_args()
    if options.part == "first":
        begin_study(options.file, options.runs)
        return
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["FAIRTUNE_CACHE"] = f"{scratch}/cache"
        if options.part == "runs":
            show_runs(options.sizes, options.keep or Path(scratch))
        elif options.part == "workers":
            show_workers(Path(scratch), *_numbers(options.size), options.workers, options.kills)
        else:
            for place in options.on:
                show_executor(place, Path(scratch) / place, options.runs, options.sleep)


def _numbers(size: str) -> tuple[int, int]:
    arms, _, seeds = size.partition("x")
    return int(arms), int(seeds)


# -- thousands of runs -------------------------------------------------------------------------------------------------


def show_runs(sizes: list[str], home: Path) -> None:
    """One line for each size and verb."""
    print(
        f"{'runs':>7}  {'':<26}{'processor s':>12}{'ms a run':>10}{'peak MB':>9}{'runs x':>9}{'time x':>8}{'MB x':>7}"
    )
    smallest: dict[str, tuple[float, float]] = {}
    for size in sizes:
        arms, seeds = _numbers(size)
        count, fewest = arms * seeds, int.__mul__(*_numbers(sizes[0]))
        file = write_study_file(home / size, arms, seeds)
        for name, words in _verbs(file, home / size / "runs"):
            if name == "status":
                make_ledger(file, home / size / "runs")
            seconds, memory = measure([sys.executable, *words])
            less, smaller = smallest.setdefault(name, (seconds, memory))
            print(
                f"{count:>7,}  {name:<26}{seconds:>12.2f}{1000 * seconds / count:>10.2f}{memory / 1e6:>9.0f}"
                f"{count / fewest:>9.1f}{seconds / less:>8.1f}{memory / smaller:>7.1f}",
                flush=True,
            )
        plan = home / size / "runs" / STUDY / "study.json"
        print(f"{count:>7,}  {'study.json':<26}{plan.stat().st_size / 1e6:>18.1f} MB", flush=True)


def _verbs(file: Path, runs: Path) -> Iterator[tuple[str, list[str]]]:
    fairtune, where = ["-m", "fairtune"], ["--runs", str(runs)]
    yield "plan", [*fairtune, "plan", str(file), *where]
    yield "plan --json", [*fairtune, "plan", str(file), "--json", *where]
    yield "status", [*fairtune, "status", *where]
    yield "status STUDY", [*fairtune, "status", STUDY, *where]
    yield "run, until the first run", [__file__, "first", str(file), str(runs)]
    yield "report", [*fairtune, "report", STUDY, *where]
    yield "report, figures kept", [*fairtune, "report", STUDY, *where]


def write_study_file(home: Path, arms: int, seeds: int, **sections: Any) -> Path:
    """A study of a tiny model, whose arms differ in one setting of a method."""
    from fairtune.testing.toy import make_tiny_model, make_tiny_task

    home.mkdir(parents=True, exist_ok=True)
    if not (home / "model").exists():
        make_tiny_model(home / "model")
    methods = {f"arm-{place}": {"methods": [{"focal": {"gamma": place / 10}}]} for place in range(1, arms)}
    study = {
        "study": STUDY, "task": make_tiny_task(home).as_study(), "model": str(home / "model"), "seeds": seeds,
        "train": {"epochs": 1, "batch_size": 32, "max_length": 32, "lr": 1e-3}, "arms": {"arm-0": {}, **methods},
        "compare": {"to": "arm-0", "margin": "1.5%"}, "execution": {"devices": "cpu"}, **sections,
    }  # fmt: skip
    (home / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return home / "study.yaml"


def make_ledger(file: Path, runs: Path) -> None:
    """Every run of the study finished, but for the last of the plan."""
    from fairtune.execution.study_files import record_plan
    from fairtune.ledger.folders import run_folder
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    if runs.exists():
        return
    plan, sync, os.fsync = make_plan(load_study(file)), os.fsync, lambda _: None  # nobody loses power meanwhile
    record_plan(plan, runs / STUDY)
    size = LedgerSize(1, 1, examples=plan.task.rows["test"], steps=20)
    for run in plan.as_json()["runs"][:-1]:
        record_run(run_folder(runs, STUDY, run["arm"], run["seed"]), {"plan": plan.hash, "study": STUDY, **run}, size)
    os.fsync = sync


class _Begun(Exception):  # noqa: N818 - no error
    """The first run would be under way now."""


class _NoExecutor:
    def submit(self, jobs: Any) -> None:
        assert len(jobs) == 1, "all others are finished"

    def events(self) -> Iterator[Any]:
        raise _Begun

    def cancel_waiting(self) -> None: ...

    def stop(self) -> None: ...


def begin_study(file: Path, runs: Path) -> None:
    """Plan a study and look at what is done of it, up to the moment when a worker would have its first job."""
    from fairtune.execution.study_run import run_plan
    from fairtune.monitor.terminal import QuietMonitor
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_checked

    try:
        run_plan(make_plan(load_checked(file, [], None)), runs, QuietMonitor(), _NoExecutor())
    except _Begun:
        return
    raise SystemExit("there was nothing to run")


# -- many workers ------------------------------------------------------------------------------------------------------


def show_workers(home: Path, arms: int, seeds: int, workers: int, kills: int) -> None:
    """What many processes leave of one ledger."""
    from shared_ledger import Load, share

    found = share(home / "runs", Load(workers, arms, seeds, units=8, sleep=0.05, kills=kills, readers=2))
    print(f"{workers} workers, {arms * seeds:,} runs, {found.seconds:.0f} s; {found.killed} workers killed")
    print(f"finished {found.finished:,} runs; {found.events:,} event lines, all whole; none lost, none doubled"
          if not found.faults else "\n".join(found.faults))  # fmt: skip
    print(f"{found.taken_over} runs taken over, {found.repeated} units done again; status read {found.reads} times")
    if found.faults:
        raise SystemExit(1)


# -- executors ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slept:
    """When a run began and ended, in which process."""

    began: float
    ended: float
    process: int


def show_executor(place: str, home: Path, runs: int, sleep: float) -> None:
    """What one kind of executor adds to runs that sleep."""
    os.environ["FAIRTUNE_SLEEP"] = str(sleep)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "benchmarks" / "sleeping"), str(ROOT / "src")])
    with _cluster(place) as (missing, section):
        if missing:
            print(f"{place:<6} not measured: {missing}", flush=True)
        else:
            _show_overhead(place, home, runs, sleep, section)


def _show_overhead(place: str, home: Path, runs: int, sleep: float, section: dict[str, Any]) -> None:
    from fairtune.execution.study_run import run_plan
    from fairtune.ledger.folders import run_folders
    from fairtune.monitor.terminal import QuietMonitor
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_checked

    file = write_study_file(home, 4, runs // 4, execution={"on": place, "devices": "cpu", "workers": 1, **section})
    plan = make_plan(load_checked(file, [], None))
    began = time.time()
    outcome = run_plan(plan, home / "runs", QuietMonitor())
    ended = time.time()
    if len(outcome.finished) != runs:
        raise SystemExit(f"{place}: {outcome.failed}")
    from fairtune.core.files import read_sealed

    slept = sorted(
        (Slept(*read_sealed(folder.result)["slept"]) for folder in run_folders(home / "runs" / STUDY)),
        key=lambda one: one.began,
    )
    slots, busy = _side_by_side(slept), sum(one.ended - one.began for one in slept)
    idle = (slots * (max(one.ended for one in slept) - slept[0].began) - busy) / runs
    print(
        f"{place:<6} {runs} runs of {sleep:g} s: {ended - began:.1f} s; the first began after {slept[0].began - began:.1f} s; "
        f"{slots} at once in {len({one.process for one in slept})} processes, which idled {idle:.2f} s a run"
        f"{_between([after.began - before.ended for before, after in _in_turn(slept)])}; "
        f"told {ended - max(one.ended for one in slept):.1f} s after the last",
        flush=True,
    )


def _between(gaps: list[float]) -> str:
    return f", {1000 * statistics.median(gaps):.0f} ms between two of one process" if gaps else ""


def _in_turn(slept: list[Slept]) -> Iterator[tuple[Slept, Slept]]:
    """Each run with the next of the same process."""
    for process in dict.fromkeys(one.process for one in slept):
        own = [one for one in slept if one.process == process]
        yield from pairwise(own)


def _side_by_side(slept: list[Slept]) -> int:
    return max(sum(one.began <= other.began < one.ended for one in slept) for other in slept)


@contextmanager
def _cluster(place: str) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """A cluster of that kind on this machine, with what `execution` needs to find it; or what is missing."""
    sys.path.insert(0, str(ROOT))
    if place == "slurm":
        from tests.cluster.slurm_cluster import real_slurm, why_not

        if (missing := why_not()) is not None:
            yield missing, {}
            return
        with real_slurm() as cluster:
            os.environ.update({name: cluster.environment[name] for name in ("SLURM_CONF", "PATH")})
            yield None, {}
    elif place == "ray":
        if importlib.util.find_spec("ray") is None:
            yield "Ray is not installed", {}
            return
        from tests.cluster.ray_nodes import ray_nodes

        with ray_nodes() as nodes:
            yield None, {"ray": {"address": nodes.address}}
    else:
        yield None, {}


if __name__ == "__main__":
    main()
