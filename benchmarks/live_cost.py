"""What a dashboard with three open pages takes from a study that trains beside it.

    python benchmarks/live_cost.py [--minutes 5] [--pages 3]

A real study trains on every core. A real dashboard with so many open pages is stopped and continued in turns (SIGSTOP, SIGCONT), so
that steps with it and without it lie side by side in time. Two figures are printed: the processor time that the dashboard takes, as
a share of the machine's, which is exact; and the ratio of step times with it and without it, which is what a user would see, with
the interval that the noise of the machine leaves.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

STUDY = "studies/movie-reviews.yaml"
WHOLE = 60.0
"""Seconds in which the processor time of the dashboard is counted."""
TURN = 8.0
"""Seconds with the dashboard, then as many without."""
PORT = 8397
READER = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("GET", f"/study/{sys.argv[2]}/feed")
answer = connection.getresponse()
while answer.fp.readline():
    pass
"""


def steps_of(home: Path) -> list[tuple[float, float, int]]:
    """Of every step: when it ended, how long it took, and its tokens, padding included."""
    found = []
    for path in home.glob("*/seed-*/events.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("event") == "step" and event["step"] > 2:
                found.append((event["time"], event["seconds"], event["tokens"] + event["padding"]))
    return found


def spent(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The mean of log ratios of neighbouring turns, and a bootstrap interval of it, as ratios."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return math.exp(statistics.fmean(ratios)), math.exp(means[50]), math.exp(means[-50])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--minutes", type=float, default=5.0)
    asked.add_argument("--pages", type=int, default=3)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "runs", options.minutes, options.pages)


def measure(runs: Path, minutes: float, pages: int) -> None:
    fairtune = [sys.executable, "-m", "fairtune"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    study = subprocess.Popen([*fairtune, "run", STUDY, "--profile", "demo", "--runs", str(runs)], **quiet)
    started: list[subprocess.Popen[bytes]] = []
    try:
        while not list(runs.glob("*/*/seed-*/events.jsonl")):
            if study.poll() is not None:
                raise SystemExit("the study ended before it began; run `fairtune run` by hand to see why")
            time.sleep(0.5)
        home = next(path for path in runs.iterdir() if (path / "study.json").is_file())
        started.append(subprocess.Popen([*fairtune, "dash", "--runs", str(runs), "--port", str(PORT)], **quiet))
        time.sleep(15)
        began = spent(psutil.Process(started[0].pid))
        started += [
            subprocess.Popen([sys.executable, "-c", READER, str(PORT), home.name], **quiet) for _ in range(pages)
        ]
        time.sleep(30)  # the first verdict is worked out
        at_rest = spent(psutil.Process(started[0].pid))
        print(
            f"the dashboard's start took {began:.1f} s of processor time, its first pages and verdict {at_rest - began:.1f} s"
        )
        dash = psutil.Process(started[0].pid)
        show_share(dash, pages)
        turns, until = [], time.time() + 60 * minutes
        while time.time() < until and study.poll() is None:
            for on in (True, False):
                for process in started:
                    os.kill(process.pid, signal.SIGCONT if on else signal.SIGSTOP)
                from_time = time.time()
                time.sleep(TURN)
                turns.append((on, from_time, time.time()))
        report(turns, steps_of(home))
    finally:
        for process in [*started, study]:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in [*started, study]:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def show_share(dash: psutil.Process, pages: int) -> None:
    """What it takes while it goes on undisturbed; in turns it would catch up on what it missed."""
    began, before = time.time(), spent(dash)
    time.sleep(WHOLE)
    share = (spent(dash) - before) / (time.time() - began) / (os.cpu_count() or 1)
    print(
        f"dashboard with {pages} pages: {100 * share:.2f} % of the machine's processor time, over {WHOLE:.0f} s",
        flush=True,
    )


def report(turns: list[tuple[bool, float, float]], steps: list[tuple[float, float, int]]) -> None:
    speeds = []
    for on, begin, end in turns:
        inside = [(seconds, tokens) for at, seconds, tokens in steps if begin + seconds <= at <= end]
        speeds.append((on, sum(s for s, _ in inside) / max(1, sum(t for _, t in inside)), len(inside)))
    pairs = [
        math.log(first[1] / second[1])
        for first, second in zip(speeds[::2], speeds[1::2], strict=False)
        if first[2] > 3 and second[2] > 3
    ]
    mean, low, high = interval(pairs)
    print(
        f"seconds per token with it, without it: ratio {mean:.4f} (95 % {low:.4f} to {high:.4f}, {len(pairs)} pairs of turns)"
    )


if __name__ == "__main__":
    main()
