"""How the command line grows: processor time and memory of `status` and `report` with the runs of a ledger, and of starting up.

Ledgers are made by hand, without training: a study of ten arms, each run with its events, card, predictions and seal. Each verb
has a process of its own, `report` twice: with nothing kept of its figures, then with all of them kept.

    python benchmarks/growth.py --runs 100 1000 10000
    python benchmarks/growth.py --start 10
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.files import write_json, write_sealed
from fairtune.ledger.events import EventLog
from fairtune.ledger.folders import RunFolder, run_folder
from fairtune.ledger.predictions import Predictions, write_predictions
from fairtune.ledger.seals import close_run
from fairtune.ledger.studies import write_study

STUDY, ARMS = "growth", 10
TRAIN = {"lr": 2e-5, "epochs": 2.0, "batch_size": 32}
PEERS = "import typer, rich, pydantic"
MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Runs a command and says what it took, from a process without other children."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="*", default=[100, 1000], help="runs in a ledger, a multiple of 10")
    parser.add_argument("--start", type=int, default=5, help="rounds of starting up, in turns")
    options = parser.parse_args()
    _show_start(options.start)
    if options.runs:
        print(f"\n{'runs':>7}  {'verb':<22}{'processor s':>12}{'ms a run':>10}{'peak MB':>9}")
    for count in options.runs:
        with tempfile.TemporaryDirectory() as scratch:
            runs = Path(scratch) / "runs"
            make_ledger(runs, LedgerSize(ARMS, count // ARMS))
            os.environ["FAIRTUNE_CACHE"] = str(Path(scratch) / "cache")
            for name, words in (
                ("status", ["status"]),
                ("report, all drawn", ["report", STUDY]),
                ("report, figures kept", ["report", STUDY]),
            ):
                seconds, memory = measure([sys.executable, "-m", "fairtune", *words, "--runs", str(runs)])
                print(
                    f"{count:>7,}  {name:<22}{seconds:>12.2f}{1000 * seconds / count:>10.2f}{memory / 1e6:>9.0f}",
                    flush=True,
                )


def _show_start(rounds: int) -> None:
    """`--help` against the import of what it is made of, in turns."""
    if rounds < 1:
        return
    words = {"import": ["-c", PEERS], "--help": ["-m", "fairtune", "--help"]}
    taken: dict[str, list[float]] = {name: [] for name in words}
    for _ in range(rounds):
        for name, command in words.items():
            taken[name].append(measure([sys.executable, *command])[0])
    ratios = [helped / peers for helped, peers in zip(taken["--help"], taken["import"], strict=True)]
    middle = {name: statistics.median(found) for name, found in taken.items()}
    print(f"`{PEERS}`: {middle['import']:.3f} s of processor time; `fairtune --help`: {middle['--help']:.3f} s")
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {rounds} rounds in turns)")


def measure(command: list[str]) -> tuple[float, float]:
    """Processor seconds and bytes of memory at most of a command."""
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=True)
    code, seconds, memory = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return seconds, memory * 1024


@dataclass(frozen=True)
class LedgerSize:
    """How large a made ledger is.

    Args:
        examples: of the test split, all of them predicted.
        validated: predictions of the validation split.
    """

    arms: int
    seeds: int
    examples: int = 400
    steps: int = 20
    validated: int = 0

    @property
    def runs(self) -> int:
        return self.arms * self.seeds


def make_ledger(runs: Path, size: LedgerSize) -> None:
    """A study whose runs are all finished."""
    plan = made_plan(size)
    (runs / STUDY).mkdir(parents=True)
    write_study(runs / STUDY, plan)
    for run in plan["runs"]:
        record_run(run_folder(runs, STUDY, run["arm"], run["seed"]), run, size)


def made_plan(size: LedgerSize) -> dict[str, Any]:
    """A plan that nobody planned."""
    arms, seeds = [f"arm-{number}" for number in range(size.arms)], range(size.seeds)
    planned = [
        _planned(position, arm, seed, size.steps)
        for position, (seed, arm) in enumerate((seed, arm) for seed in seeds for arm in arms)
    ]
    return {
        "fairtune": "0.1.0", "protocol": 1, "plan": "0123456789abcdef", "study": STUDY,
        "task": {
            "name": "made-task", "kind": "classify", "metric": "accuracy", "labels": ["no", "yes"],
            "rows": {"train": 320, "validation": max(80, size.validated), "test": size.examples},
            "source": "made", "fingerprint": "f" * 64,
        },
        "model": {"name": "minilm", "identity": "5" * 64, "folder": "", "hub_id": None, "revision": None},
        "order": "crossover", "seeds": list(seeds),
        "arms": {
            arm: {
                "methods": [] if arm == arms[0] else [{"focal": {"gamma": float(place)}}], "train": TRAIN,
                "control": None if arm == arms[0] else arms[0], "primary": None if arm == arms[0] else arms[0],
                "idle": False, "step_factor": 1.0,
            }
            for place, arm in enumerate(arms)
        },
        "compare": {"to": arms[0], "margin": "1.5%", "confidence": 0.95},
        "execution": {"devices": ["cpu"], "checkpoint_every": "5min", "save_model": False},
        "runs": planned, "differences": [],
    }  # fmt: skip


def _planned(position: int, arm: str, seed: int, steps: int) -> dict[str, Any]:
    return {
        "position": position, "block": seed, "arm": arm, "seed": seed, "key": f"{arm}-{seed}", "steps": steps,
        "settings": {"train": TRAIN, "methods": [], "seed": seed},
        "signature": f"fairtune:0.1.0|protocol:1|arm:{arm}|seed:{seed}|run:{arm}-{seed}",
    }  # fmt: skip


def record_run(folder: RunFolder, run: dict[str, Any], size: LedgerSize) -> None:
    """A finished run, as a plan has it."""
    generator = np.random.default_rng([run["position"]])
    folder.write_plan({"plan": "0123456789abcdef", "study": STUDY, **run})
    write_sealed(folder.environment, _environment())
    test = _predictions("t", size.examples, generator)
    splits = {"test": test} | ({"validation": _predictions("v", size.validated, generator)} if size.validated else {})
    write_predictions(folder.predictions, splits)
    log = EventLog(folder.events)
    for step in range(1, size.steps + 1):
        share = step / size.steps
        log.write("step", step, step=step, loss=0.7 - 0.4 * share + 0.01 * float(generator.random()), seconds=0.5)
        if step % max(1, size.steps // 4) == 0:
            log.write("evaluation", step, split="validation", step=step, accuracy=0.7 + share / 10)
    log.close()
    parameters = {"trainable": 1000, "frozen": 0, "buffers": 0, "total": 1000, "trainable_share": 1.0}
    card = {"same": 7, "changed": [], "new": ["head"], "unverified": [], "frozen": [], "parameters": parameters}
    write_json(folder.card, card)
    result = {
        "status": "finished", "signature": run["signature"], "metric": "accuracy",
        "metrics": {"test": {"accuracy": float((test.predicted == test.labels).mean())}},
        "seconds": {"data": 0.1, "step": 10.0, "validation": 2.0, "test": 1.0, "total": 13.1},
        "step_seconds": {"n": size.steps, "median": 0.5}, "parameters": parameters,
        "frozen": {"tensors": 0, "sha256": "a" * 64, "unchanged": True},
        "memory": {"peak_bytes": 1_500_000_000, "kind": "resident in the process"},
    }  # fmt: skip
    close_run(folder, run["key"], result)


def _predictions(letter: str, count: int, generator: np.random.Generator) -> Predictions:
    labels = np.arange(count) % 2
    predicted = np.where(generator.random(count) < 0.85, labels, 1 - labels)
    ids = tuple(f"{letter}{number}" for number in range(count))
    return Predictions(ids, labels, np.eye(2, dtype=np.float32)[predicted])


def _environment() -> dict[str, Any]:
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "fairtune": "0.1.0", "python": "3.11.7", "cpu": "a CPU",
        "cores": {"physical": 2, "logical": 2}, "memory_bytes": 25_000_000_000, "device": "cpu",
        "packages": {"torch": "2.13.0", "numpy": "2.4.6"}, "git": None, "torch": {"threads": 1, "cuda": None},
        "load": {"time": 1.0, "load_average": [0.25, 0.1, 0.1], "gpus": []},
        "load_after": {"time": 2.0, "load_average": [1.9, 0.1, 0.1], "gpus": []},
    }  # fmt: skip


if __name__ == "__main__":
    main()
