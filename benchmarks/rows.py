"""Reading and checking a million rows, by two trees of the source: in turns, each time in a process of its own.

    python benchmarks/rows.py ../old/src src               # ratios of the second tree's time to the first's
    python benchmarks/rows.py ../old/src src --rows 100000 --rounds 5 --kinds csv jsonl parquet

Both must make the same task of a file. Next to wall time stands processor time, with that of child processes, which depends less
on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def measure(file: str) -> dict[str, Any]:
    """Read a file as a task, with nothing in the cache."""
    import pyarrow.compute  # noqa: F401 - part of the imports, not of the work

    from fairtune.tasks import load_task

    started, spent = time.perf_counter(), _processor_seconds()
    task = load_task({"train": file, "text": "text", "label": "label"})
    seconds = {"wall": time.perf_counter() - started, "processor": _processor_seconds() - spent}
    return {**seconds, "task": [task.fingerprint, *(split.identity for split in task.splits.values())]}


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def make_file(folder: Path, kind: str, rows: int) -> Path:
    """Made-up sentences with a number each, so that no row is there twice; every tenth is not ASCII."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    draw, file = random.Random(0), folder / f"rows.{kind}"
    syllables = [f"{draw.choice('bcdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('lmnrst')}" for _ in range(60)]
    words = [draw.choice(syllables) + draw.choice(syllables) for _ in range(500)]
    texts = [f'{" ".join(draw.choices(words, k=20))}, "{n}"{" über" if n % 10 == 0 else "."}' for n in range(rows)]
    table = pa.table({"text": texts, "label": [n % 2 for n in range(rows)]})
    if kind == "csv":
        csv.write_csv(table, file)
    elif kind == "parquet":
        parquet.write_table(table, file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")
    return file


def in_a_process(source: Path, file: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, "--measure", str(file)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(source.resolve()), "FAIRTUNE_CACHE": cache},
        )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("trees", nargs="*", type=Path, metavar="TREE", help="two folders with the package")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--kinds", nargs="+", choices=("csv", "jsonl", "parquet"), default=["csv"])
    options.add_argument("--measure", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure)))
        return
    if len(given.trees) != 2:
        options.error("give two trees of the source")
    with tempfile.TemporaryDirectory() as scratch:
        for kind in given.kinds:
            file = make_file(Path(scratch), kind, given.rows)
            found: dict[Path, list[dict[str, Any]]] = {tree: [] for tree in given.trees}
            for number in range(given.rounds):
                for tree in given.trees if number % 2 == 0 else reversed(given.trees):
                    found[tree].append(in_a_process(tree, file))
            first, second = found.values()
            if first[0]["task"] != second[0]["task"]:
                sys.exit(f"{file.name}: the two trees make different tasks of it")
            for name in ("wall", "processor"):
                ratios = [two[name] / one[name] for one, two in zip(first, second, strict=True)]
                seconds = [statistics.median(run[name] for run in runs) for runs in (first, second)]
                print(
                    f"{kind}, {given.rows:,} rows, {name}: {seconds[0]:.1f} s and {seconds[1]:.1f} s, ratio "
                    f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
