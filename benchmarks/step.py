"""Where the time of a training step goes: MiniLM, 32 texts of 14 tokens, fairtune's own loop, one thread.

    OMP_NUM_THREADS=1 python benchmarks/step.py [--rounds 5] [--steps 6]

Each round times plain steps (by the processor's time, since others may use the machine), then profiles as many, then multiplies
plain matrices of the model's shapes, forwards and backwards. The peak is the best rate of any of those shapes in its round.
FLOPs of a step are counted with torch's counter. Printed are medians over rounds with their range:

- share of a step in matrix products, as profiled, and the rate that they reach there;
- share of a step that its products would take at the peak rate: what no way of writing the rest could go below;
- the rest, by kind. `python` is what passes between torch's operations: Python, autograd's engine, and the profiler itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from fairtune.execution.prepare import prepare_run
from fairtune.execution.stopwatch.worker import go_on_training
from fairtune.ledger.events import EventLog
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study

BATCH, TOKENS, WARM = 32, 14, 3
PRODUCTS, WHOLE = "matrix products", "a profiled step"
KINDS = {
    PRODUCTS: ("mm", "addmm", "bmm", "baddbmm"),
    "dropout": ("random_", "ge", "mul", "bernoulli_", "native_dropout", "native_dropout_backward", "div_"),
    "layer norm": ("native_layer_norm", "native_layer_norm_backward"),
    "attention, elementwise": ("_softmax", "_softmax_backward_data", "_safe_softmax", "where", "masked_fill_", "eq", "any", "all"),
    "gelu, tanh": ("gelu", "gelu_backward", "tanh", "tanh_backward"),
    "gradient norm": ("_foreach_norm", "linalg_vector_norm", "norm", "stack"),
    "AdamW": ("_fused_adamw_", "_foreach_add_"),
    "embedding": (
        "embedding", "index_select", "index_add_", "embedding_dense_backward", "index_put_", "_index_put_impl_", "_unique2",
        "index", "unique_dim",
    ),
    "gradients of biases": ("sum",),
    "residuals": ("add", "add_"),
    "copies and zeros": ("copy_", "fill_", "zero_", "cat"),
}  # fmt: skip
KIND_OF = {f"aten::{name}": kind for kind, names in KINDS.items() for name in names}


@contextmanager
def training_run(steps: int) -> Iterator[Any]:
    """A run as a study's worker makes it, whose texts are all cut to the same length."""
    described = {
        "study": "step",
        "task": "movie-reviews",
        "model": "minilm",
        "train": {"epochs": 1, "batch_size": BATCH, "max_length": TOKENS, "examples": BATCH * steps, "evaluate": steps},
        "seeds": 1,
        "arms": {"baseline": {}},
    }
    plan = make_plan(load_study(described))
    with tempfile.TemporaryDirectory() as scratch:
        job = plan.runs[0].at(Path(scratch))
        job.run.path.mkdir(parents=True)
        run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
        yield run
        run.log.close()


def seconds_of_a_step(run: Any, steps: int) -> float:
    started = time.process_time()
    for _ in range(steps):
        advance(run)
    return (time.process_time() - started) / steps


def advance(run: Any) -> None:
    go_on_training(run)
    run.advance()


def peak_rate(run: Any) -> float:
    """The best rate, in FLOPs a second, of plain products in the shapes of the model's, with their operands as they lie there."""
    rows, best = BATCH * TOKENS, 0.0
    shapes = {
        tuple(p.shape) for p in run.model.parameters() if p.ndim == 2 and min(p.shape) > 100 and max(p.shape) < 5000
    }
    for outputs, inputs in sorted(shapes):
        states, gradient, weight = torch.randn(rows, inputs), torch.randn(rows, outputs), torch.randn(outputs, inputs)
        for left, right in ((states, weight.t()), (gradient, weight), (gradient.t(), states)):
            for _ in range(20):
                started = time.process_time()
                left @ right
                best = max(best, 2 * rows * inputs * outputs / (time.process_time() - started))
    return best


def profiled_milliseconds(run: Any, steps: int) -> dict[str, float]:
    """Of each kind, in a step."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function("steps"):
        for _ in range(steps):
            advance(run)
    found: dict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        if event.key == "steps":
            found[WHOLE] = event.cpu_time_total / steps / 1000
        elif event.key.startswith("aten::"):
            found[KIND_OF.get(event.key, "other operations")] += event.self_cpu_time_total / steps / 1000
    found["python"] = found[WHOLE] - sum(value for kind, value in found.items() if kind != WHOLE)
    return found


def show(values: list[float], unit: str = "", digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f}{unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=6, help="timed, and as many profiled, in a round")
    given = options.parse_args()
    torch.set_num_threads(1)
    steps, peaks, profiles = [], [], []
    with training_run(WARM + 1 + 2 * given.rounds * given.steps) as run:
        seconds_of_a_step(run, WARM)
        with FlopCounterMode(display=False) as counter:
            advance(run)
        flops = counter.get_total_flops()
        for _ in range(given.rounds):
            steps.append(seconds_of_a_step(run, given.steps))
            profiles.append(profiled_milliseconds(run, given.steps))
            peaks.append(peak_rate(run))
    print(
        f"MiniLM, {BATCH} x {TOKENS} tokens, {given.rounds} rounds of {given.steps} steps, {torch.get_num_threads()} thread"
    )
    print(
        f"a step: {show([1000 * one for one in steps], ' ms')} of processor time; {flops / 1e9:.2f} GFLOP in matrix products"
    )
    print(f"peak of plain products in its shapes: {show([one / 1e9 for one in peaks], ' GFLOP/s')}")
    shares = [one[PRODUCTS] / one[WHOLE] for one in profiles]
    reached = [flops / (share * step) / 1e9 for share, step in zip(shares, steps, strict=True)]
    print(
        f"share of a step in matrix products: {show([100 * one for one in shares], ' %')}, at {show(reached, ' GFLOP/s')}"
    )
    bound = [100 * flops / peak / step for peak, step in zip(peaks, steps, strict=True)]
    print(f"share of a step that its products would take at the peak rate: {show(bound, ' %')}; the aim is 65 %\n")
    kinds = sorted(set().union(*profiles) - {WHOLE}, key=lambda kind: -statistics.median(one[kind] for one in profiles))
    print("of a profiled step          share, %")
    for kind in kinds:
        print(f"{kind:27} {show([100 * one[kind] / one[WHOLE] for one in profiles])}")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main()
