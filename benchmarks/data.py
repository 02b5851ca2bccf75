"""From a file with a million rows to tokens on disk: fairtune beside `datasets` with the same tokenizer.

Each measurement is a process of its own; the sides take turns, `--rounds` times, on CSV and on JSONL. Printed are the ratios of
rows per second (reading and tokenising together, and tokenising alone), the time of a second start, and the most memory above the
imports: of the process alone, and with the processes it started.

    python benchmarks/data.py                      # a million rows
    python benchmarks/data.py --rows 100000 --rounds 3
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from fairtune.tasks import load_task

PEERS = ("fairtune", "datasets", "datasets-1")
"""`datasets` maps with a process for each core; `datasets-1` with one, in which the tokenizer has a thread for each core."""
MAX_LENGTH = 128


class MostMemory:
    """The most resident memory above what it was at the start, looked at 20 times per second."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._base, self.own, self.all = self._process.memory_info().rss, 0, 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            own = self._process.memory_info().rss - self._base
            others = 0
            for child in self._process.children(recursive=True):
                try:
                    others += child.memory_info().rss
                except psutil.Error:
                    continue
            self.own, self.all = max(self.own, own), max(self.all, own + others)
            time.sleep(0.05)


def measure(peer: str, file: str, cache: str) -> dict[str, Any]:
    """Read a file and tokenise it; what is in the cache already is used."""
    import datasets
    import pyarrow.compute  # noqa: F401 - part of the imports, not of the work

    from fairtune.models.sources import find_model
    from fairtune.models.tokenizers import load_tokenizer
    from fairtune.tasks.tokens.encoded_splits import encode_task

    tokenizer = load_tokenizer(find_model("minilm").fetch())
    os.environ["FAIRTUNE_CACHE"] = cache
    memory, started = MostMemory(), time.perf_counter()
    if peer == "fairtune":
        task = load_task({"train": file, "text": "text", "label": "label"})
        read = time.perf_counter()
        splits = encode_task(task, tokenizer, MAX_LENGTH)
        rows, tokens = sum(map(len, splits.values())), sum(int(s.starts[-1]) for s in splits.values())
    else:
        kind = "csv" if file.endswith(".csv") else "json"
        data = datasets.load_dataset(kind, data_files=file, cache_dir=cache, split="train")
        read = time.perf_counter()
        cores = len(os.sched_getaffinity(0)) if peer == "datasets" else None
        data = data.map(
            lambda batch: tokenizer(batch["text"], truncation=True, max_length=MAX_LENGTH),
            batched=True,
            num_proc=cores,
            remove_columns=["text"],
        )
        rows, tokens = len(data), None
    ended = time.perf_counter()
    return {
        "rows": rows, "tokens": tokens, "read": read - started, "tokenise": ended - read, "total": ended - started,
        "own": memory.own, "all": memory.all,
    }  # fmt: skip


def in_a_process(peer: str, file: Path, cache: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", peer, str(file), str(cache)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def make_files(folder: Path, rows: int) -> list[Path]:
    """The same rows as CSV and JSONL: two review sentences and a number each, so that no row is there twice."""
    texts = [text for (text,) in load_task("movie-reviews").splits["train"].texts]
    pick = random.Random(0).choice
    files = [folder / "rows.csv", folder / "rows.jsonl"]
    with files[0].open("w", newline="") as table, files[1].open("w") as lines:
        writer = csv.writer(table)
        writer.writerow(["text", "label"])
        for number in range(rows):
            text, label = f"{pick(texts)} {number} {pick(texts)}", number % 2
            writer.writerow([text, label])
            lines.write(json.dumps({"text": text, "label": label}) + "\n")
    return files


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    options.add_argument("--measure", nargs=3, metavar=("PEER", "FILE", "CACHE"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(*given.measure)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for file in make_files(Path(scratch), given.rows):
            compare(file, given.peers, given.rounds, Path(scratch))


def compare(file: Path, peers: list[str], rounds: int, scratch: Path) -> None:
    found: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    again: dict[str, list[float]] = {peer: [] for peer in peers}
    for number in range(rounds):
        for peer in peers if number % 2 == 0 else reversed(peers):
            cache = scratch / "cache"
            found[peer].append(in_a_process(peer, file, cache))
            again[peer].append(in_a_process(peer, file, cache)["total"])
            shutil.rmtree(cache)
    print(f"\n{file.name}: {found[peers[0]][0]['rows']:,} rows, {file.stat().st_size / 1e6:.0f} MB, rounds {rounds}")
    print(
        f"{'':12} {'read s':>8} {'tokenise s':>11} {'rows/s':>9} {'again s':>8} {'memory MiB':>11} {'with processes':>15}"
    )
    for peer, runs in found.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in ("read", "tokenise", "total")}
        own, everything = (max(run[name] for run in runs) / 2**20 for name in ("own", "all"))
        print(
            f"{peer:12} {middle['read']:8.1f} {middle['tokenise']:11.1f} {runs[0]['rows'] / middle['total']:9,.0f} "
            f"{statistics.median(again[peer]):8.2f} {own:11,.0f} {everything:15,.0f}"
        )
    for peer in peers[1:]:
        for name, what in (("total", "reading and tokenising"), ("tokenise", "tokenising alone")):
            ratios = [theirs[name] / ours[name] for ours, theirs in zip(found[peers[0]], found[peer], strict=True)]
            print(f"{what}: {peers[0]} has {statistics.median(ratios):.2f}x the rows per second of {peer} "
                  f"({min(ratios):.2f} to {max(ratios):.2f}, n = {len(ratios)})")  # fmt: skip


if __name__ == "__main__":
    main()
