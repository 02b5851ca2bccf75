"""How much of the time that frozen queries and keys can save is really saved.

    python benchmarks/freeze.py [--blocks 100] [--models minilm gpt2-512x6]

Baseline and frozen model take turns in one process, step by step in blocks of ABBA; each is a whole optimizer step (forward,
backward, clipping, AdamW) as fairtune's loop makes it, on one batch. Prints the ratio of step times with a 95 % interval over
blocks, for whole steps and for forward and backward alone, beside the bound that the matrix products set; and an A/A pair,
two baselines, which shows what the machine's noise alone can do. Each ratio is given twice: the median over blocks, and that
of the quickest quarter of the steps, which other work on the machine disturbs less. Then times orthogonalising a bert-base.
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
RESAMPLES = 2000


@dataclass
class Trainee:
    """A model with what one optimizer step needs."""

    model: Any
    batch: dict[str, Any]

    def __post_init__(self) -> None:
        import torch

        from fairtune.settings.sections import Train
        from fairtune.training.fast_layers import use_fast_dropout, use_fast_gelu
        from fairtune.training.optimizer import make_optimizer, parameter_groups

        use_fast_dropout(self.model.train())
        use_fast_gelu(self.model)
        groups = parameter_groups(self.model, Train(), ())
        self.trainable = [p for group in groups for p in group["params"]]
        self.optimizer = make_optimizer(groups, Train(lr=1e-5), torch.device("cpu"))

    def step(self) -> tuple[float, float]:
        """Seconds of a whole optimizer step, and of its forward and backward pass."""
        from fairtune.training.optimizer import gradient_norm, step_clipped

        started = time.perf_counter()
        self.model(**self.batch).loss.backward()
        passed = time.perf_counter() - started
        step_clipped(self.optimizer, self.trainable, gradient_norm(self.trainable), CLIP)
        self.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started, passed


def minilm(tokens: int) -> Trainee:
    """Separate projections, two classes."""
    import torch

    from fairtune.models.loader import load_classifier
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


MODELS: dict[str, Callable[[int], Trainee]] = {"minilm": minilm, "gpt2-512x6": gpt2}
Steps = Any  # an array of seconds, [block, A or B, first or second step]


def compare(a: Trainee, b: Trainee, blocks: int, title: str) -> Steps:
    """Seconds of every step, with a last axis for the whole step and its forward and backward pass."""
    import numpy as np

    for _ in range(3):
        a.step(), b.step()
    seconds = []
    for block in range(blocks):
        times: dict[str, list[tuple[float, float]]] = {"a": [], "b": []}
        for turn in "abba" if block % 2 == 0 else "baab":
            times[turn].append((a if turn == "a" else b).step())
        seconds.append([times["a"], times["b"]])
        print(f"\r{title}: block {block + 1} of {blocks}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.array(seconds)


def by_block(seconds: Steps) -> float:
    """The median over blocks of A's time over B's."""
    import numpy as np

    total = seconds.sum(axis=2)
    return float(np.median(total[:, 0] / total[:, 1]))


def by_quickest(seconds: Steps) -> float:
    """A's lower quartile of step times over B's."""
    import numpy as np

    quartile = np.quantile(seconds, 0.25, axis=(0, 2))
    return float(quartile[0] / quartile[1])


def show(title: str, seconds: Steps, bound: float | None) -> None:
    """Print both ratios with their bootstrap intervals over blocks, and the share of the bound's saving they reach."""
    import numpy as np

    draws = np.random.default_rng(0).integers(0, len(seconds), (RESAMPLES, len(seconds)))
    for name, ratio in (("median of blocks", by_block), ("quickest quarter", by_quickest)):
        middle = ratio(seconds)
        low, high = np.quantile([ratio(seconds[draw]) for draw in draws], (0.025, 0.975))
        line = f"  {title:<21} {name}: {middle:.3f}x ({low:.3f} to {high:.3f})"
        if bound is not None:
            line += f", {100 * (1 - 1 / middle) / (1 - 1 / bound):.0f} % of the saving that the bound allows"
        print(line, flush=True)


def measure(name: str, blocks: int, tokens: int) -> None:
    import torch

    from fairtune import orthogonalize_qk

    torch.manual_seed(0)
    baseline = MODELS[name](tokens)
    small = {key: value[:2] for key, value in baseline.batch.items()}
    pair, frozen = copy.deepcopy(baseline.model), copy.deepcopy(baseline.model)
    card = orthogonalize_qk(frozen, init="keep", batch=small)
    bound, share = card.costs["speedup_bound"], 1 - card.parameters.trainable_share
    print(f"{name}: {tokens} tokens per step, {100 * share:.1f} % of parameters frozen, bound {bound:.3f}x", flush=True)
    seconds = compare(baseline, Trainee(frozen, baseline.batch), blocks, f"{name}, frozen")
    show("whole steps", seconds[..., 0], bound)
    show("forward and backward", seconds[..., 1], bound)
    again = compare(baseline, Trainee(pair, baseline.batch), max(4, blocks // 2), f"{name}, A/A")
    show("A/A: two baselines", again[..., 0], None)


def orthogonalise() -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from fairtune.methods.orthogonal_qk import OrthogonalQKConfig
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
    parser.add_argument("--blocks", type=int, default=100, help="blocks of ABBA")
    parser.add_argument("--tokens", type=int, default=512, help="tokens per step")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    chosen = parser.parse_args()
    from fairtune.execution.executors.slots import worker_environment

    if (
        "MALLOC_TOP_PAD_" not in os.environ
    ):  # glibc reads its settings at the start of a process: begin again as a worker would
        os.execve(sys.executable, [sys.executable, *sys.argv], worker_environment("cpu"))
    for name in chosen.models:
        measure(name, chosen.blocks, chosen.tokens)
    orthogonalise()


if __name__ == "__main__":
    main()
