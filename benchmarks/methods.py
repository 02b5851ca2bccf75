"""What a step costs with each method: measured, beside the count of passes that the report prints as expected.

    python benchmarks/methods.py [--steps 40] [--model minilm] [--methods fgm pgd freelb]

A run with the method and a run of the baseline take turns in one process, step by step in blocks of ABBA, on made texts of
one length. A step is all that fairtune's loop does for one: the batch, forward, backward, clipping, AdamW, and what the method
does after it. Prints each method's step time as a ratio of the baseline's, by the clock and in the processor's time: the median
over blocks with quartiles, and that of the quickest quarter of the steps, which other work on the machine disturbs less. First
comes an A/A pair, two baselines, which shows what noise alone can do.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from freeze import by_block, by_quickest, compare

METHODS = (
    "focal", "weighted_ce", "label_smoothing", "rdrop", "fgm", "pgd", "freelb", "layerwise_lr", "ema", "augment",
)  # fmt: skip
WORDS = (
    "the",
    "a",
    "of",
    "film",
    "book",
    "story",
    "time",
    "people",
    "house",
    "water",
    "world",
    "school",
    "day",
    "year",
)
EXAMPLES, LABELS = 512, ("no", "yes")
MANY = 100_000  # steps: more than are made, so that no evaluation comes between


class Steps:
    """A run of an arm, made to do one optimizer step after the other."""

    def __init__(self, folder: Path, model: str, methods: list[str], batch_size: int, words: int) -> None:
        from fairtune.execution.prepare import prepare_run
        from fairtune.ledger.events import EventLog
        from fairtune.study.plan import make_plan
        from fairtune.study.study_file import load_study

        texts = made_texts(folder / "texts.csv", words)
        task = {"name": "made", "train": texts, "validation": texts, "test": texts, "text": "text", "label": "label"}
        train = {"steps": MANY, "evaluate": MANY, "batch_size": batch_size, "max_length": 2 * words}
        study = {
            "study": "methods", "task": task, "model": model, "train": train, "seeds": [0], "allow_contamination": True,
            "arms": {"arm": {"methods": methods}}, "compare": {"to": "arm"}, "execution": {"checkpoint_every": "24h"},
        }  # fmt: skip
        plan = make_plan(load_study(study))
        job = plan.runs[0].at(folder / "-".join(["runs", *methods]))
        job.run.path.mkdir(parents=True, exist_ok=True)
        self.run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
        self.factor = plan.study.methods("arm")[0].config.step_factor if methods else 1.0

    def step(self) -> tuple[float, float]:
        """Seconds of a step by the clock, and the processor's time for it, which other work disturbs less."""
        from fairtune.training.progress import TRAIN

        started, before = time.perf_counter(), time.process_time()
        self.run.advance()
        assert self.run.progress.phase == TRAIN
        return time.perf_counter() - started, time.process_time() - before


def made_texts(file: Path, words: int) -> str:
    """Texts of so many words, all different."""
    generator = random.Random(0)
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label"])
        for number in range(EXAMPLES):
            writer.writerow([" ".join(generator.choices(WORDS, k=words)), LABELS[number % 2]])
    return str(file)


def measure(title: str, method: Steps, baseline: Steps, blocks: int) -> None:
    import numpy as np

    seconds = compare(method, baseline, blocks, title)  # type: ignore[arg-type]
    line = f"{title:<16} expected {method.factor:.2f}; measured"
    for kind, of_kind in (("by the clock", seconds[..., 0]), ("processor", seconds[..., 1])):
        total = of_kind.sum(axis=2)
        low, high = np.quantile(total[:, 0] / total[:, 1], (0.25, 0.75))
        line += (
            f" {kind} {by_block(of_kind):.2f} ({low:.2f} to {high:.2f}), quickest quarter {by_quickest(of_kind):.2f};"
        )
    print(f"{line} n = {len(seconds)} blocks", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="steps of each method, and as many of the baseline")
    parser.add_argument("--model", default="minilm", help="a checkpoint: a name or a folder")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--words", type=int, default=30, help="words of a text")
    chosen = parser.parse_args()
    from fairtune.execution.executors.slots import worker_environment
    from fairtune.methods.registry import registered

    if "MALLOC_TOP_PAD_" not in os.environ:  # glibc reads its settings at the start: begin again as a worker would
        os.execve(sys.executable, [sys.executable, *sys.argv], worker_environment("cpu"))
    blocks = max(1, chosen.steps // 2)

    def ready(folder: str, methods: list[str]) -> Steps:
        return Steps(Path(folder), chosen.model, methods, chosen.batch_size, chosen.words)

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as second:
        baseline: Any = ready(folder, [])
        print(
            f"{chosen.model}: batches of {chosen.batch_size} texts of {chosen.words} words, {4 * blocks} steps per line"
        )
        measure("A/A", ready(second, []), baseline, blocks)
        for name in chosen.methods:
            if name in registered():
                measure(name, ready(folder, [name]), baseline, blocks)


if __name__ == "__main__":
    main()
