"""Real A/A: how often two copies of the same arm, trained for real, get a verdict.

One study with `aa: true` trains the reference and its copy with many seeds; groups of seeds that share none are each judged as a
study of their own. A sound test says something in 5 % of them at most.

    python benchmarks/aa.py --pairs 20 --seeds 3
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from fairtune import load_results, run_study
from fairtune.analysis.arm_pairs import ArmPair
from fairtune.analysis.results import Results
from fairtune.analysis.verdicts import Family, Verdict, judge_family


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20, help="groups of seeds, each judged alone")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of a group")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--runs", type=Path, help="keep the runs here; else they are thrown away")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        runs = options.runs or Path(scratch)
        run_study(_study(options), runs=runs)
        verdicts = judge_groups(load_results(runs, "aa"), options.seeds)
    words = Counter(verdict.word for verdict in verdicts)
    settled = sum(verdict.settled for verdict in verdicts)
    print(f"{len(verdicts)} A/A pairs of {options.seeds} seeds, {options.model}, {options.steps} steps: {dict(words)}")
    print(f"verdicts: {settled} of {len(verdicts)}; p below .05 alone: {sum((v.p or 1) < 0.05 for v in verdicts)}")


def _study(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "study": "aa",
        "task": "movie-reviews",
        "model": options.model,
        "aa": True,
        "seeds": options.pairs * options.seeds,
        "train": {
            "lr": 3e-4, "steps": options.steps, "batch_size": 16, "examples": 320, "eval_examples": 300, "max_length": 28,
        },
        "arms": {"baseline": {}},
        "execution": {"save_model": False},
    }  # fmt: skip


def judge_groups(results: Results, size: int) -> list[Verdict]:
    """The verdict of each group of seeds."""
    copy = next(arm for arm in results.arms if arm != results.reference)
    pair, seeds = ArmPair(results, copy, results.reference), sorted({run.seed for run in results.runs})
    groups = [set(seeds[start : start + size]) for start in range(0, len(seeds) - size + 1, size)]
    return [
        judge_family([pair.difference(group)], None, Family(results.confidence, results.metric))[0] for group in groups
    ]


if __name__ == "__main__":
    main()
