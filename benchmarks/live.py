"""What it costs to watch a ledger: a look at ten thousand runs of which four move, the first rows, and memory over a day.

Ledgers are made by hand (`growth.py`). Times are those of the processor. A day is as many looks as there are in one every two
seconds, with a clock that is moved on by hand: in each, four runs make a step, and now and then one ends and the next begins.

    python benchmarks/live.py
    python benchmarks/live.py --runs 1000 --looks 5000
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from fairtune.core.files import read_json
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, lock, run_folders
from fairtune.ledger.scan import LedgerScan
from fairtune.ledger.seals import close_run
from growth import STUDY, LedgerSize, make_ledger, measure

ROOT = Path(__file__).parents[1]
ARMS, MOVING, LOOK_SECONDS = 10, 4, 2.0
LENGTH = 500
"""Steps of a run of the simulated day."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="in the ledger, a multiple of 10")
    parser.add_argument("--rounds", type=int, default=20, help="looks that are timed")
    parser.add_argument("--looks", type=int, default=43_200, help="of the simulated day; 0 leaves it out")
    parser.add_argument("--day-runs", type=int, default=200, help="runs of the ledger that is watched for a day")
    parser.add_argument(
        "--before", type=Path, nargs="*", default=[], help="src folders of earlier versions, to compare with"
    )
    options = parser.parse_args()
    os.fsync = lambda _: None  # what is made here need not outlive a crash
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs"
        make_ledger(runs, LedgerSize(ARMS, options.runs // ARMS, examples=20))
        show_status(runs, [*options.before, ROOT / "src"])
        show_opening(runs, options.runs)
        show_first_page(runs, options.runs)
        show_looks(runs, options.runs, options.rounds)
    if options.looks:
        with tempfile.TemporaryDirectory() as scratch:
            runs = Path(scratch) / "runs"
            make_ledger(runs, LedgerSize(ARMS, options.day_runs // ARMS, examples=20))
            show_day(runs, options.looks)


def show_status(runs: Path, trees: list[Path]) -> None:
    """`fairtune status` in processes of their own, by each source tree in turns; once without and once with what it has kept."""
    print(f"{'`fairtune status`, processor seconds':<50}{'first':>8}{'again':>8}")
    for tree in trees:
        for kept in runs.glob("index.sqlite"):  # of earlier versions
            kept.unlink()
        os.environ["PYTHONPATH"] = str(tree)
        found = [measure([sys.executable, "-m", "fairtune", "status", "--runs", str(runs)])[0] for _ in range(2)]
        print(f"  {tree!s:<48}{found[0]:>8.2f}{found[1]:>8.2f}", flush=True)
    os.environ["PYTHONPATH"] = str(trees[-1])


def show_opening(runs: Path, count: int) -> None:
    """How long it is until there is something to show."""
    live = LedgerScan(runs)
    whole, _ = taken(lambda: (live.tick(), live.rows(STUDY)))
    curves, _ = taken(lambda: [live.progress(STUDY, row.arm, row.seed) for row in live.rows(STUDY)])
    print(
        f"\n{count:,} runs: rows after {whole:.2f} s of the processor, all curves {curves:.2f} s later",
        flush=True,
    )


def show_first_page(runs: Path, count: int) -> None:
    """How long a browser waits for its first page, and for the next, of a server that has just been started."""
    command = [sys.executable, "-m", "fairtune", "dash", "--runs", str(runs), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            waits = []
            for _ in range(2):
                began = time.perf_counter()
                with urllib.request.urlopen(f"{address}study/{STUDY}") as answer:
                    size = len(answer.read())
                waits.append(time.perf_counter() - began)
                time.sleep(2)
            print(
                f"\nthe dashboard's first page of {count:,} runs: {waits[0]:.2f} s after it says where it is ({size:,} bytes); the "
                f"next: {waits[1]:.2f} s (by the clock on the wall)",
                flush=True,
            )
        finally:
            server.terminate()


def show_looks(runs: Path, count: int, rounds: int) -> None:
    """A look when four runs move."""
    moving = [Moving(folder) for folder in run_folders(runs / STUDY)[:: count // MOVING][:MOVING]]
    live = LedgerScan(runs)
    live.tick()
    for run in moving:
        live.progress(STUDY, run.folder.arm, run.folder.seed)
    live.tick()
    looks, walls = [], []
    for _ in range(rounds):
        for run in moving:
            run.step()
        began = time.perf_counter()
        spent, changed = taken(live.tick)
        walls.append(time.perf_counter() - began)
        assert changed == {STUDY}, "four of them moved"
        looks.append(spent)
    middle = statistics.median(looks)
    print(f"\na look, {MOVING} of {count:,} runs move: {1e3 * middle:.0f} ms of the processor (at most {1e3 * max(looks):.0f}; "
          f"by the clock on the wall {1e3 * statistics.median(walls):.0f})", flush=True)  # fmt: skip


def show_day(runs: Path, looks: int) -> None:
    """Memory while a ledger is watched."""
    ahead = [0.0]
    process = psutil.Process()
    print(f"\n{'looks':>8}{'hours':>7}{'steps':>9}{'resident MB':>13}{'ms a look':>11}")
    waiting = run_folders(runs / STUDY)
    moving = [Moving(waiting.pop()) for _ in range(MOVING)]
    live = LedgerScan(runs, clock=lambda: time.monotonic() + ahead[0])
    steps, spent = 0, 0.0
    for look in range(looks + 1):
        if look % max(1, looks // 8) == 0:
            gc.collect()
            resident = process.memory_info().rss / 1e6
            each = 1e3 * spent / max(1, look)
            print(f"{look:>8,}{look * LOOK_SECONDS / 3600:>7.1f}{steps:>9,}{resident:>13.1f}{each:>11.2f}", flush=True)
        for place, run in enumerate(moving):
            run.step()
            steps += 1
            if run.steps == LENGTH + 37 * place:
                run.end()
                waiting.insert(0, run.folder)
                moving[place] = Moving(waiting.pop())
        ahead[0] += LOOK_SECONDS
        spent += taken(lambda: _look_as_a_view(live))[0]


def _look_as_a_view(live: LedgerScan) -> None:
    live.tick()
    for row in live.rows(STUDY):
        if row.status == "running":
            live.progress(STUDY, row.arm, row.seed)


class Moving:
    """A run that is under way, by hand."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder, self.steps = folder, 0
        self._plan, self._result = read_json(folder.plan) or {}, read_json(folder.result) or {}
        self._held = ExitStack()
        self._held.enter_context(lock(folder.lock, "taken"))
        folder.begin({name: value for name, value in self._plan.items() if name != "seal"})
        self._log = EventLog(folder.events)
        self._log.write("resumed", 0, step=0)

    def step(self) -> None:
        self.steps += 1
        self._log.write("step", self.steps, step=self.steps, epoch=0, loss=1 / self.steps, seconds=0.01)

    def end(self) -> None:
        self._log.close()
        result = {name: value for name, value in self._result.items() if name not in ("seal", "key")}
        close_run(self.folder, self._plan["key"], result)
        self.folder.clear_scratch()
        self._held.close()


def taken(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what came of it."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


if __name__ == "__main__":
    main()
