"""Training throughput of fairtune against transformers' `Trainer`, measured side by side in one run.

    python benchmarks/throughput.py [--updates 80] [--rounds 3]

MiniLM, batch 32, the same examples and number of updates for everyone (a quarter of them for padding to 128, where every
update costs the same). Peers: `Trainer` padding to 128 tokens, with dynamic
padding, and with its grouping by length. Each lives in a process of its own, as its users have it; the processes take turns, in
an order that reverses from round to round, so that what disturbs the machine disturbs all alike. SST-2 is read through
FAIRTUNE_MIRROR where that is set, else the movie reviews. Prints ratios with their range over rounds.
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

BATCH, LENGTH, RATE, CLASSES = 32, 128, 1e-4, 2
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
        "seeds": 100,
        "arms": {"baseline": {}},
    }


class Fairtune:
    """The product's own loop, as its workers run it."""

    def __init__(self, examples: int) -> None:
        from fairtune.study.plan import make_plan
        from fairtune.study.study_file import load_study

        self.plan = make_plan(load_study(study(examples)))

    def train(self, seed: int) -> dict[str, float]:
        import numpy as np

        from fairtune.execution.job import make_job
        from fairtune.execution.run import prepare_run
        from fairtune.ledger.events import EventLog
        from fairtune.training.progress import TRAIN

        with tempfile.TemporaryDirectory() as scratch:
            job = make_job(self.plan, self.plan.runs[seed], Path(scratch))
            job.run.path.mkdir(parents=True)
            log = EventLog(job.run.events)
            run = prepare_run(job, "cpu", log, lambda: None).run
            started = time.perf_counter()
            while run.progress.phase == TRAIN:
                run.advance()
            seconds = time.perf_counter() - started
            log.close()
            events = [json.loads(line) for line in job.run.events.read_text().splitlines()]
        widths = [(e["tokens"] + e["padding"]) / e["examples"] for e in events if e["event"] == "step"]
        started = time.perf_counter()
        found = run.objective.evaluate(run.model, "validation", run.device, (), lambda: None)
        evaluation = time.perf_counter() - started
        return {
            "seconds": seconds,
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

    def train(self, seed: int) -> dict[str, float]:
        import torch
        from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments

        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_pretrained(self.folder, num_labels=CLASSES, dtype=torch.float32)
        with tempfile.TemporaryDirectory() as scratch:
            arguments = TrainingArguments(
                output_dir=scratch, num_train_epochs=1, per_device_train_batch_size=BATCH, per_device_eval_batch_size=64,
                learning_rate=RATE, weight_decay=0.01, warmup_steps=0.1, lr_scheduler_type="linear", max_grad_norm=1.0,
                save_strategy="no", eval_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
                use_cpu=True, seed=seed, train_sampling_strategy="group_by_length" if self.padding == "grouped" else "random",
            )  # fmt: skip
            trainer = Trainer(
                model=model,
                args=arguments,
                train_dataset=self.data,
                data_collator=DataCollatorWithPadding(self.tokenizer),
                compute_metrics=lambda found: {"accuracy": float((found[0].argmax(-1) == found[1]).mean())},
            )
            started = time.perf_counter()
            trainer.train()
            seconds = time.perf_counter() - started
            accuracy = trainer.evaluate(self.validation)["eval_accuracy"] if self.padding == "grouped" else float("nan")
        return {"seconds": seconds, "accuracy": accuracy}


def serve(peer: str, examples: int) -> None:
    """A peer's process: train whenever asked."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    trainee = Fairtune(examples) if peer == "fairtune" else HuggingFace(examples, peer.partition("-")[2])
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(trainee.train(int(line))), file=answers, flush=True)


def examples_of(peer: str, updates: int) -> int:
    return (updates // 4 if peer == "trainer-128" else updates) * BATCH


def start(peer: str, examples: int) -> subprocess.Popen[str]:
    from fairtune.execution.executors.slots import worker_environment

    environment = worker_environment("cpu") if peer == "fairtune" else dict(os.environ)
    command = [sys.executable, __file__, "--serve", peer, "--updates", str(examples // BATCH)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{peer} did not start")
    return process


def ask(process: subprocess.Popen[str], seed: int) -> dict[str, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    print(seed, file=process.stdin, flush=True)
    answer: dict[str, float] = json.loads(process.stdout.readline())
    return answer


def measure(updates: int, rounds: int, peers: list[str]) -> dict[str, list[dict[str, float]]]:
    processes = {peer: start(peer, examples_of(peer, updates)) for peer in peers}
    found: dict[str, list[dict[str, float]]] = {peer: [] for peer in peers}
    for number in range(rounds):
        for peer in peers if number % 2 == 0 else reversed(peers):
            row = ask(processes[peer], number)
            row["rate"] = examples_of(peer, updates) / row["seconds"]
            found[peer].append(row)
            print(f"  round {number + 1}: {PEERS[peer]}: {row['rate']:.1f} examples/s", file=sys.stderr)
    for process in processes.values():
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
    parser.add_argument("--updates", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--serve", choices=list(PEERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.updates * BATCH)
        return
    show(measure(arguments.updates, arguments.rounds, arguments.peers))


if __name__ == "__main__":
    main()
