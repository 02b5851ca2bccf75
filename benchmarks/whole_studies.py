"""Whole studies, as `fairtune run` performs them, by the code as it is and by other code or settings, in turns.

For `benchmarks/throughput.py --study`. A study is everything from the command to its end: start-up, plan, workers, training,
scoring, ledger. Both sides have a cache of their own, filled by a study of one step before anything is measured.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS = 8
ROOT = Path(__file__).parents[1]
RUN = "import runpy; runpy.run_module('fairtune', run_name='__main__')"
SPINNING = f"import fairtune.core.machine as threads; threads.PATIENT.clear(); {RUN}"
"""The command line with workers whose threads wait for each other as OpenMP has them."""


@dataclass(frozen=True)
class Side:
    """Who performs a study.

    Args:
        source: folder with the package.
        code: what starts the command line.
        execution: of the study, where it is not the usual.
    """

    name: str
    source: Path
    code: str
    execution: Mapping[str, Any]
    cache: Path


def compare_studies(
    study: Mapping[str, Any], updates: int, batch: int, rounds: int, against: str | None, busy: int
) -> None:
    """Print examples a second of both sides, and how much faster the present code is, round by round and altogether."""
    with tempfile.TemporaryDirectory(prefix="fairtune-studies-") as scratch, foreign_processes(busy):
        sides = list(find_sides(against, Path(scratch)))
        for side in sides:
            perform(side, study, 1, 1, Path(scratch))
        rates: dict[str, list[float]] = {side.name: [] for side in sides}
        for number in range(rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                seconds = perform(side, study, updates, RUNS, Path(scratch))
                rates[side.name].append(RUNS * updates * batch / seconds)
                print(f"  round {number + 1}: {side.name}: {rates[side.name][-1]:.1f} examples/s", file=sys.stderr)
    (now, mine), (before, others) = rates.items()
    print(f"studies of {RUNS} runs of {updates} updates of {batch} examples, beside {busy} foreign busy processes")
    for name, found in rates.items():
        print(f"{name:44} {statistics.median(found):8.1f} examples/s ({min(found):.1f} to {max(found):.1f})")
    ratios = [a / b for a, b in zip(mine, others, strict=True)]
    low, high = min(ratios), max(ratios)
    print(
        f"{now} is faster than {before} by {statistics.median(ratios):.2f}x ({low:.2f} to {high:.2f}, {rounds} rounds)"
    )


def find_sides(against: str | None, scratch: Path) -> Iterator[Side]:
    yield Side("one worker of one thread per core", ROOT / "src", RUN, {}, scratch / "cache-now")
    if against is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        name, alone = f"one worker of {cores} spinning threads", {"workers": 1, "threads": cores}
        yield Side(name, ROOT / "src", SPINNING, alone, scratch / "cache-before")
        return
    archive = subprocess.run(["git", "archive", against, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(scratch / "before", filter="data")
    yield Side(f"the code at {against}", scratch / "before" / "src", RUN, {}, scratch / "cache-before")


def perform(side: Side, study: Mapping[str, Any], updates: int, runs: int, scratch: Path) -> float:
    """Seconds of a whole study, which is thrown away."""
    given = {**study, "seeds": runs, "train": {**study["train"], "steps": updates}}
    given["execution"] = {"devices": "cpu", "save_model": False, **side.execution}
    file, ledger = scratch / "study.json", scratch / "ledger"
    file.write_text(json.dumps(given))  # which is YAML too
    unset = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONPATH": str(side.source), "FAIRTUNE_CACHE": str(side.cache)}
    command = [sys.executable, "-c", side.code, "run", str(file), "--runs", str(ledger), "--force"]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    finished = len(list(ledger.glob("*/*/seed-*/predictions.parquet")))
    if done.returncode or finished != runs:
        sys.exit(f"{side.name}: {finished} of {runs} runs were finished\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    shutil.rmtree(ledger)
    return seconds


@contextlib.contextmanager
def foreign_processes(count: int) -> Iterator[None]:
    """So many single-threaded processes that never rest, as other people's are."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
