"""How long a report takes with the runs of a ledger, and where the time goes.

Ledgers are made by hand (`growth.py`): every run has its events, card, seal and predictions of two splits. Each report has a
process of its own, in turns: with nothing kept of its figures (first), then with all of them kept (again), which is what
somebody who looks at a study twice waits for. Both kinds recompute every number. Seconds are those of the wall and of the
processor; ratios are to the smallest ledger.

    python benchmarks/report_size.py --sizes 20x5 20x50 40x25 --rounds 3
    python benchmarks/report_size.py --sizes 20x50 --profile 40
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from growth import STUDY, LedgerSize, make_ledger

MEASURED = """
import json, os, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Runs a command and says what it took, from a process without other children."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["20x5", "20x50"], help="ARMSxSEEDS, the smallest first")
    parser.add_argument("--examples", type=int, default=2000, help="predicted in the test split")
    parser.add_argument("--validated", type=int, default=500, help="predicted in the validation split")
    parser.add_argument("--steps", type=int, default=130, help="of each run, each with its event")
    parser.add_argument("--rounds", type=int, default=3, help="reports of each kind, in turns")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the ledgers there, and use those that it has")
    parser.add_argument("--profile", type=int, metavar="LINES", help="show what the last ledger's reports spend it on")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        homes = {name: (options.keep or Path(scratch)) / name for name in options.sizes}
        for name, home in homes.items():
            arms, _, seeds = name.partition("x")
            size = LedgerSize(int(arms), int(seeds), options.examples, options.steps, options.validated)
            if not home.exists():
                make_ledger(home / "runs", size)
        if options.profile:
            show_profiles(homes[options.sizes[-1]], options.profile)
        else:
            show_sizes(homes, options.rounds)


def show_sizes(homes: dict[str, Path], rounds: int) -> None:
    """One line for each ledger and kind of report."""
    kinds = ("first", "again")
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {
        (name, kind): [] for name in homes for kind in kinds
    }
    for _ in range(rounds):
        for name, home in homes.items():
            shutil.rmtree(home / "cache", ignore_errors=True)
            for kind in kinds:
                found[name, kind].append(measure_report(home))
    print(f"{'arms x seeds':>12}  {'report':<7}{'wall s':>8}{'lowest':>8}{'processor s':>13}{'ratio':>7}{'peak MB':>9}")
    smallest = next(iter(homes))
    for (name, kind), times in found.items():
        wall, processor, memory = (statistics.median(one[place] for one in times) for place in range(3))
        ratio = processor / statistics.median(one[1] for one in found[smallest, kind])
        lowest = min(one[0] for one in times)
        print(f"{name:>12}  {kind:<7}{wall:>8.2f}{lowest:>8.2f}{processor:>13.2f}{ratio:>7.2f}{memory / 1e6:>9.0f}")


def measure_report(home: Path) -> tuple[float, float, float]:
    """Seconds of the wall and of the processor, and bytes at most, of `fairtune report`."""
    words = [sys.executable, "-m", "fairtune", "report", STUDY, "--runs", str(home / "runs")]
    environment = {**os.environ, "FAIRTUNE_CACHE": str(home / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words], capture_output=True, text=True, check=True, env=environment
    )
    code, wall, processor, memory = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr}")
    return wall, processor, memory * 1024


def show_profiles(home: Path, lines: int) -> None:
    """Where both kinds of report spend their time, in this process."""
    from fairtune.cli.report import show_report

    os.environ["FAIRTUNE_CACHE"] = str(home / "cache")
    for kind in ("first", "again"):
        print(f"\n{kind} report of {home.name}")
        profile = cProfile.Profile()
        with Path(os.devnull).open("w") as nowhere:
            shown, sys.stdout = sys.stdout, nowhere
            try:
                profile.runcall(show_report, home / "runs", STUDY, False)
            finally:
                sys.stdout = shown
        pstats.Stats(profile).sort_stats("cumulative").print_stats(lines)


if __name__ == "__main__":
    main()
