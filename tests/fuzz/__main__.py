"""Long hunts: many seeds of a target, in a process of its own that may crash, hang or take all memory without ending the hunt."""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fuzz.outcomes import PATIENCE
from tests.fuzz.targets import TARGETS

MEMORY = 8 << 30
"""Bytes of address space for what reads a damaged file."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="default: every one; may be repeated")
    parser.add_argument("--seeds", type=int, default=1000, help="how many for each target")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this one only")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds) if given.seed is None else range(given.seed, given.seed + 1)
    findings = sum(hunt(name, seeds) for name in given.target or TARGETS)
    print(f"{findings} findings")
    return 1 if findings else 0


def hunt(name: str, seeds: range) -> int:
    """Try seeds; after a crash or a hang go on with the next one. Returns the number of findings."""
    began, findings, place = time.monotonic(), 0, 0
    while place < len(seeds):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_try, args=(name, seeds[place:], theirs))
        process.start()
        theirs.close()
        while place < len(seeds):
            try:
                outcome = (
                    ours.recv() if ours.poll(2 * PATIENCE) else f"hangs below Python, for more than {2 * PATIENCE} s"
                )
            except EOFError:
                process.join()
                outcome = f"ends the process (exit code {process.exitcode})"
            if outcome is not None:
                findings += 1
                print(f"{name}, seed {seeds[place]}: {outcome}\n", flush=True)
            place += 1
            if outcome is not None and outcome.startswith(("hangs", "ends")):
                break
        process.kill()
        process.join()
    print(f"{name}: {len(seeds):,} seeds in {time.monotonic() - began:.1f} s, {findings} findings", flush=True)
    return findings


def _try(name: str, seeds: range, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            outcome = TARGETS[name].run(seed, Path(folder))
        pipe.send(None if outcome is None else str(outcome))


if __name__ == "__main__":
    sys.exit(main())
