"""How much of the time that frozen queries and keys can save is really saved.

    python benchmarks/freeze.py [--blocks 12] [--models minilm gpt2-512x6]

Baseline and frozen model take turns in one process, in blocks of ABBA; each turn is a few whole optimizer steps (forward, backward,
clipping, AdamW) as fairtune's loop makes them, on one batch. Prints the ratio of step times with an interval over blocks,
for whole steps and for forward and backward alone, beside the bound that the matrix products set; and an A/A pair, two
baselines, which shows what the machine's noise alone can do. Then times orthogonalising a bert-base.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CLIP = 1.0
RESAMPLES = 4000


@dataclass
class Trainee:
    """A model with what one optimizer step needs."""

    model: Any
    batch: dict[str, Any]

    def __post_init__(self) -> None:
        import torch

        from fairtune.study.schema import Train
        from fairtune.training.dropout import use_fast_dropout
        from fairtune.training.optimizer import make_optimizer, parameter_groups

        use_fast_dropout(self.model.train())
        groups = parameter_groups(self.model, Train(), ())
        self.trainable = [p for group in groups for p in group["params"]]
        self.optimizer = make_optimizer(groups, Train(lr=1e-5), torch.device("cpu"))

    def step(self) -> tuple[float, float]:
        """Seconds of a whole optimizer step, and of its forward and backward pass."""
        from fairtune.training.optimizer import clip_gradients

        started = time.perf_counter()
        self.model(**self.batch).loss.backward()
        passed = time.perf_counter() - started
        clip_gradients(self.trainable, CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started, passed


def minilm(tokens: int) -> Trainee:
    """Separate projections, two classes."""
    import torch

    from fairtune.models.loading import load_classifier
    from fairtune.models.sources import find_model

    network = load_classifier(find_model("minilm"), ("negative", "positive")).network
    return Trainee(network, _batch(network, 32, tokens // 32, labels=torch.randint(0, 2, (32,))))


def gpt2(tokens: int) -> Trainee:
    """Fused projections: 512 wide, 6 layers, 8 heads, a language model of a small vocabulary."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=8000, n_embd=512, n_layer=6, n_head=8, n_positions=512, bos_token_id=0, eos_token_id=0
    )
    network = GPT2LMHeadModel(config)
    return Trainee(network, _batch(network, 8, tokens // 8))


def _batch(network: Any, rows: int, length: int, labels: Any = None) -> dict[str, Any]:
    import torch

    ids = torch.randint(1000, network.config.vocab_size, (rows, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids if labels is None else labels}


MODELS: dict[str, tuple[Callable[[int], Trainee], int]] = {"minilm": (minilm, 2048), "gpt2-512x6": (gpt2, 2048)}


def compare(a: Trainee, b: Trainee, blocks: int, steps: int, told: str) -> tuple[list[float], list[float]]:
    """Ratios of A's to B's step times, one a block: of whole steps, and of forward and backward alone."""
    import numpy as np

    whole, passes = [], []
    for _ in range(2):
        a.step(), b.step()
    for block in range(blocks):
        times: dict[str, list[tuple[float, float]]] = {"a": [], "b": []}
        for turn in "abba" if block % 2 == 0 else "baab":
            times[turn] += [(a if turn == "a" else b).step() for _ in range(steps)]
        first, second = (np.median(np.array(times[turn]), axis=0) for turn in "ab")
        whole.append(float(first[0] / second[0]))
        passes.append(float(first[1] / second[1]))
        print(f"\r{told}: block {block + 1} of {blocks}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return whole, passes


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The median ratio with a 95 % bootstrap interval over blocks."""
    import numpy as np

    drawn = np.random.default_rng(0).choice(ratios, (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return float(np.median(ratios)), float(low), float(high)


def show(told: str, ratios: list[float], bound: float | None) -> None:
    middle, low, high = interval(ratios)
    line = f"  {told:<34} {middle:.3f}x ({low:.3f} to {high:.3f})"
    if bound is not None:
        line += f"   {100 * (1 - 1 / middle) / (1 - 1 / bound):.0f} % of the saving that the bound allows"
    print(line)


def measure(name: str, blocks: int, steps: int) -> None:
    import torch

    from fairtune import orthogonalize_qk

    torch.manual_seed(0)
    build, tokens = MODELS[name]
    baseline = build(tokens)
    small = {key: value[:2] for key, value in baseline.batch.items()}
    frozen = copy.deepcopy(baseline.model)
    card = orthogonalize_qk(frozen, init="keep", batch=small)
    bound = card.costs["speedup_bound"]
    share = 1 - card.parameters.trainable_share
    print(f"{name}: {tokens} tokens a step, {100 * share:.1f} % of parameters frozen, bound {bound:.3f}x")
    pair = copy.deepcopy(baseline.model)
    whole, passes = compare(baseline, Trainee(frozen, baseline.batch), blocks, steps, f"{name}, frozen")
    show("whole steps", whole, bound)
    show("forward and backward", passes, bound)
    again, _ = compare(baseline, Trainee(pair, baseline.batch), max(2, blocks // 2), steps, f"{name}, A/A")
    show("A/A: baseline against baseline", again, None)


def orthogonalise() -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from fairtune.methods.orthogonal_qk.config import OrthogonalQKConfig
    from fairtune.methods.orthogonal_qk.method import OrthogonalQK

    torch.manual_seed(0)
    network = BertForSequenceClassification(BertConfig())
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        OrthogonalQK(OrthogonalQKConfig(init="headwise")).prepare(network)
        seconds.append(time.perf_counter() - started)
    print(
        f"orthogonalising bert-base (288 heads): {sorted(seconds)[2]:.2f} s, median of 5 ({min(seconds):.2f} to {max(seconds):.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12, help="blocks of ABBA")
    parser.add_argument("--steps", type=int, default=2, help="optimizer steps a turn")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    chosen = parser.parse_args()
    from fairtune.execution.local import worker_environment

    if (
        "MALLOC_TOP_PAD_" not in os.environ
    ):  # glibc reads its settings at the start of a process: begin again as a worker would
        os.execve(sys.executable, [sys.executable, *sys.argv], worker_environment("cpu"))
    for name in chosen.models:
        measure(name, chosen.blocks, chosen.steps)
    orthogonalise()


if __name__ == "__main__":
    main()
