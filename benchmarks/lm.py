"""Language models: tokens per second, time and memory of the loss, each beside its peer.

    python benchmarks/lm.py [--parts speed loss memory] [--blocks 16]

speed: fairtune's loop, transformers' `Trainer` and a bare PyTorch loop train the same GPT-2 (preset gpt-mini: 256 wide, 4 layers,
    no dropout, fp32) from the same weights on the same batches with the same AdamW, clipping and cosine. Each lives in a process of
    its own, as its users have it; they take turns, a few steps each, in an order that is drawn anew for each block. The bare
    loop comes twice: as one writes it, and with fairtune's settings of the allocator and its one-kernel GELU.
loss: forward and backward of `linear_cross_entropy` against `F.cross_entropy` on whole logits, in one process, in turns.
memory: the most that either needs beyond its inputs, each in a fresh process.

Ratios have 95 % intervals from resampling the blocks, in which all peers stay together. `--blocks 6` is for a first look: on two
busy cores its part `speed` took 2 min 14 s. The first time a tokenizer is trained too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from throughput import ask
from turns import RESAMPLES, compare, show

BATCH, LENGTH, VOCABULARY, RATE, WARMUP, CLIP, SEED = 8, 256, 8000, 1e-3, 4, 1.0, 0
STEPS, UNTIMED, TEXT = 2, 2, 1_000_000
"""Steps in a turn, blocks before the clock counts, and tokens of text, more than any run reads."""
PEERS = {
    "fairtune": "fairtune",
    "bare": "bare loop",
    "bare-tuned": "bare loop, tuned",
    "trainer": "Trainer",
}
LOSSES = {2000: 256, 8000: 256, 50257: 512}
"""Width by vocabulary."""
TOKENS = {"loss": 1024, "memory": 4 * 512}
PARTS = ("speed", "loss", "memory")


# -- speed -------------------------------------------------------------------------------------------------------------


def prepared(blocks: int, scratch: Path) -> tuple[Any, Path]:
    """The product's own run, ready to be advanced, and its events; every peer takes weights and batches from it."""
    from fairtune.execution.job import make_job
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    steps = (UNTIMED + blocks) * STEPS + 1
    train = {
        "steps": steps, "evaluate": steps, "batch_size": BATCH, "max_length": LENGTH, "lr": RATE, "warmup": WARMUP,
        "schedule": "cosine", "clip": CLIP, "precision": "fp32", "tokens": TEXT,
    }  # fmt: skip
    study = {
        "study": "lm",
        "task": "movie-reviews/text",
        "model": {"preset": "gpt-mini", "context": LENGTH, "dropout": 0.0},
        "tokenizer": {"train": VOCABULARY},
        "train": train,
        "seeds": [SEED],
        "arms": {"baseline": {}},
    }
    plan = make_plan(load_study(study))
    job = make_job(plan, plan.runs[0], scratch)
    job.run.path.mkdir(parents=True)
    return prepare_run(job.spec, job.run, "cpu", EventLog(job.run.events), lambda: None).run, job.run.events


class Fairtune:
    """The product's own loop, as its workers run it."""

    def __init__(self, run: Any, events: Path) -> None:
        self.run, self.events, self.first = run, events, math.nan

    def turns(self) -> Iterator[None]:
        while True:
            self.run.advance()
            if math.isnan(self.first):
                self.first = json.loads(self.events.read_text().splitlines()[-1])["loss"]
            yield


class Bare:
    """A loop as one writes it."""

    def __init__(self, run: Any, tuned: bool) -> None:
        import torch

        from fairtune.training.fast_layers import use_fast_gelu

        self.model, self.rows, self.order = taken(run)
        if tuned:
            use_fast_gelu(self.model)
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, fused=True)
        self.total, self.first = run.total_steps, math.nan

    def turns(self) -> Iterator[None]:
        import torch

        self.model.train()
        for step in range(self.total):
            share = (
                step / WARMUP
                if step < WARMUP
                else (1 + math.cos(math.pi * (step - WARMUP) / (self.total - WARMUP))) / 2
            )
            for group in self.optimizer.param_groups:
                group["lr"] = RATE * share
            ids = torch.from_numpy(self.rows[self.order[step]].astype("int64"))
            loss = self.model(input_ids=ids, labels=ids).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.first = loss.item() if step == 0 else self.first
            yield


def taken(run: Any) -> tuple[Any, Any, list[Any]]:
    """A plain model with the run's weights, its blocks of tokens, and its batches as rows of them."""
    from transformers import GPT2LMHeadModel

    from fairtune.core.seeding import derive

    model = GPT2LMHeadModel(run.model.config)
    model.load_state_dict(run.model.state_dict())
    order = run.objective.order(BATCH, derive(run.seed, "order"), 0)
    return model, run.objective.text["train"].blocks(LENGTH), order[: run.total_steps]


def run_trainer(run: Any, turn: Callable[[float], None]) -> None:
    """transformers' Trainer; `turn` is called with the first step's loss when steps are done, and returns when more are due."""
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    model, rows, order = taken(run)
    ids = [torch.from_numpy(row) for chosen in order for row in rows[chosen].astype("int64")]
    first = math.nan

    class Turns(TrainerCallback):  # type: ignore[misc]
        def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
            nonlocal first
            first = logs.get("loss", first)

        def on_step_end(self, *_: Any, **__: Any) -> None:
            turn(first)

    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch, max_steps=run.total_steps, per_device_train_batch_size=BATCH, learning_rate=RATE,
            weight_decay=0.01, warmup_steps=WARMUP, lr_scheduler_type="cosine", max_grad_norm=CLIP, use_cpu=True,
            train_sampling_strategy="sequential", logging_first_step=True, logging_steps=10**9, save_strategy="no",
            eval_strategy="no", report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        data: Any = [{"input_ids": one, "labels": labels_of(one)} for one in ids]
        Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Turns()]).train()


def labels_of(ids: Any) -> Any:
    """Trainer divides by the number of labels; the first, which nothing predicts, would count too and make the mean smaller."""
    labels = ids.clone()
    labels[0] = -100
    return labels


def serve(peer: str, blocks: int) -> None:
    """A peer's process: take so many steps whenever asked."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    due, started = 0, 0.0

    def turn(first: float) -> None:
        """A step is done; when all that are due are, answer and wait to be asked again."""
        nonlocal due, started
        due -= 1
        if due > 0:
            return
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "first": first}) if due == 0 else "ready", file=answers, flush=True)
        due, started = int(sys.stdin.readline() or sys.exit()), time.perf_counter()

    with tempfile.TemporaryDirectory() as scratch:
        run, events = prepared(blocks, Path(scratch))
        turn(math.nan)
        if peer == "trainer":
            run_trainer(run, turn)
            return
        trainee = Fairtune(run, events) if peer == "fairtune" else Bare(run, peer == "bare-tuned")
        for _ in trainee.turns():
            turn(trainee.first)


def start(peer: str, blocks: int) -> subprocess.Popen[str]:
    from fairtune.execution.executors.slots import worker_environment

    environment = dict(os.environ) if peer in ("bare", "trainer") else worker_environment("cpu", None)
    command = [sys.executable, __file__, "--serve", peer, "--blocks", str(blocks)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        sys.exit(f"{PEERS[peer]} did not start; `{' '.join(command)}` shows why")
    return process


def speed(blocks: int) -> None:
    import numpy as np

    processes = {peer: start(peer, blocks) for peer in PEERS}
    draw = np.random.default_rng(0)
    rows = []
    for block in range(UNTIMED + blocks):
        turns = draw.permutation(list(PEERS))
        found = {peer: ask(processes[peer], STEPS) for peer in turns}
        rows.append([found[peer]["seconds"] for peer in PEERS])
        if block == 0:
            first = {peer: found[peer]["first"] for peer in PEERS}
        print(f"\rspeed: block {block + 1} of {UNTIMED + blocks}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for process in processes.values():
        process.terminate()
    losses = ", ".join(f"{PEERS[peer]} {loss:.5f}" for peer, loss in first.items())
    print(
        f"speed: GPT-2 256 x 4, {VOCABULARY} tokens, {BATCH} x {LENGTH} tokens per step, {blocks} blocks of {STEPS} steps"
    )
    print(f"  loss of the first step: {losses}")
    if max(first.values()) - min(first.values()) > 1e-4 * first["fairtune"]:
        sys.exit("The losses of the first step differ, so these do not train the same thing.")
    seconds = np.array(rows[UNTIMED:])
    resamples = draw.integers(0, blocks, (RESAMPLES, blocks))
    for place, (peer, name) in enumerate(PEERS.items()):
        line = f"  {name:<17} {STEPS * BATCH * LENGTH / np.median(seconds[:, place]):7.0f} tokens/s"
        if peer != "fairtune":
            ratio, (low, high) = (
                _ratio(seconds, place),
                np.quantile([_ratio(seconds[d], place) for d in resamples], (0.025, 0.975)),
            )
            line += f"   fairtune is {ratio:.3f}x as fast ({low:.3f} to {high:.3f})"
        print(line, flush=True)


def _ratio(seconds: Any, place: int) -> float:
    """A peer's median time over fairtune's."""
    import numpy as np

    return float(np.median(seconds[:, place]) / np.median(seconds[:, 0]))


# -- the loss alone ----------------------------------------------------------------------------------------------------


@dataclass
class Loss:
    """Forward and backward of a loss, from hidden states to their gradient and the weight's."""

    tokens: int
    vocabulary: int
    width: int
    chunked: bool

    def __post_init__(self) -> None:
        import torch

        torch.manual_seed(0)
        self.hidden = torch.randn(self.tokens, self.width, requires_grad=True)
        self.weight = (0.02 * torch.randn(self.vocabulary, self.width)).requires_grad_()
        self.targets = torch.randint(0, self.vocabulary, (self.tokens,))

    def step(self) -> tuple[float, float]:
        from torch.nn import functional

        from fairtune.training.token_losses import linear_cross_entropy

        self.hidden.grad = self.weight.grad = None
        started = time.perf_counter()
        if self.chunked:
            loss = linear_cross_entropy(self.hidden, self.weight, None, self.targets)
        else:
            loss = functional.cross_entropy(functional.linear(self.hidden, self.weight).float(), self.targets)
        loss.backward()
        seconds = time.perf_counter() - started
        return seconds, seconds


def loss_alone(blocks: int) -> None:
    for vocabulary, width in LOSSES.items():
        plain, ours = (Loss(TOKENS["loss"], vocabulary, width, chunked) for chunked in (False, True))
        rounds = max(4, blocks // 4) if vocabulary > 10000 else blocks
        seconds = compare(plain, ours, rounds, f"loss, {vocabulary} tokens")  # type: ignore[arg-type]
        print(f"loss: vocabulary {vocabulary}, width {width}, {TOKENS['loss']} tokens; plain time over fairtune's")
        show("forward and backward", seconds[..., 0], None)


def memory() -> None:
    vocabulary, tokens = 50257, TOKENS["memory"]
    whole = 4 * tokens * vocabulary / 2**20
    print(f"memory: vocabulary {vocabulary}, width 512, 4 x 512 tokens; whole fp32 logits are {whole:.0f} MiB")
    for name, chunked in (("plain", "0"), ("fairtune", "1")):
        command = [sys.executable, __file__, "--memory-of", chunked]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        resident, allocated = found["resident"] / 2**20, found["allocated"] / 2**20
        print(
            f"  {name:<9} resident {resident:6.0f} MiB, {resident / whole:.2f} of them; "
            f"allocated by torch {allocated:6.0f} MiB, {allocated / whole:.2f} of them"
        )


def measure_memory(chunked: bool) -> None:
    """The most memory that a loss needs beyond its inputs: of the process, then as torch's allocator counts it."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    Loss(8, 100, 16, chunked).step()  # what the first use of anything loads
    one = Loss(TOKENS["memory"], 50257, 512, chunked)
    torch.mm(one.hidden.detach()[:64], one.weight.detach()[:4096].t())
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _peak_resident()
    one.step()
    resident = _peak_resident() - before
    one.hidden.grad = one.weight.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        one.step()
    with tempfile.TemporaryDirectory() as scratch:
        seen.export_chrome_trace(f"{scratch}/trace.json")
        events = json.loads(Path(scratch, "trace.json").read_text())["traceEvents"]
    changes = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]")
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    print(json.dumps({"resident": resident, "allocated": most}))


def _peak_resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(parts: list[str], blocks: int) -> None:
    import torch

    from fairtune.execution.executors.slots import worker_environment

    load = os.getloadavg()[0]
    print(f"{blocks} blocks; torch {torch.__version__}, {torch.get_num_threads()} threads, load {load:.1f}", flush=True)
    for part in parts:
        if part == "speed":
            speed(blocks)
        elif part == "memory":
            memory()
        else:  # as a worker has it: glibc reads its settings at the start of a process
            command = [sys.executable, __file__, "--here", part, "--blocks", str(blocks)]
            subprocess.run(command, env=worker_environment("cpu", None), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--blocks",
        type=int,
        default=16,
        help="of turns; the loss of the largest vocabulary has a quarter",
    )
    parser.add_argument("--serve", choices=list(PEERS), help=argparse.SUPPRESS)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--here", choices=["loss"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.blocks)
    elif chosen.memory_of is not None:
        measure_memory(bool(chosen.memory_of))
    elif chosen.here:
        loss_alone(chosen.blocks)
    else:
        measure(chosen.parts, chosen.blocks)


if __name__ == "__main__":
    main()
