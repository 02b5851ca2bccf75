"""What self-organising maps cost: in a training step, trained alone beside other libraries, and in the labelling pass.

    python benchmarks/som.py [--parts step maps labelling] [--pairs 200] [--rounds 5]

Everything takes turns in one process, in an order that reverses from turn to turn. MiniLM on the sentences of the movie reviews,
batch 32, BP-SOM with 128 units and 20 x 20 cells.

step       One model that makes every optimizer step with a labelled map (alpha .25) and, on the same batch, twice without, as the
           head without labels does. The ratio of each pair of steps: median with its 95 % interval, and quartiles; and that of
           the two without, which shows what the machine's noise alone can do. Then the head alone, where the difference is seen
           that drowns in the noise of whole steps.
maps       `fairtune.SOM` beside MiniSom and torchsom (`pip install minisom torchsom`), trained from the same prototypes on the
           same activations, epochs, radii and rates. MiniSom is given the same rule to the letter (the neighbourhood from a table,
           which is quicker than its own), so that its map is that of `sequential` up to the order of examples. torchsom cannot:
           its cells move by the mean over the batch, by 1/batch of what the others do at the same rate, so its error is given
           also for a rate times the batch size; its neighbourhood is its own `bubble`, the cheapest. It is timed as `fit` has it,
           which measures errors after each batch, and by its steps alone, which does not.
labelling  The labelling pass over the training examples, with all that is recorded of it, beside an evaluation of the same ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

UNITS, GRID, BATCH, WARM_UP = 128, 20, 32, 4
EPOCHS, MAP_BATCH, RADIUS, RATE = 10, 64, (6, 0), (0.2, 0.05)
SIDES, HEADS, RESAMPLES = 3, 400, 2000


def ready(scratch: Path, steps: int, examples: int) -> Any:
    """A run of BP-SOM as a worker has it before its first step; nothing is pruned."""
    from fairtune.execution.prepare import prepare_run
    from fairtune.ledger.events import EventLog
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study

    study = {
        "study": "som",
        "task": "movie-reviews",
        "model": "minilm",
        "train": {"steps": steps, "batch_size": BATCH, "evaluate": steps, "examples": examples},
        "seeds": [0],
        "arms": {"bpsom": {"methods": [{"bpsom": {"hidden": UNITS, "grid": GRID, "alpha": 0.25, "prune": None}}]}},
        "compare": {"to": "bpsom"},
        "execution": {"checkpoint_every": "24h"},
    }
    plan = make_plan(load_study(study))
    job = plan.runs[0].at(scratch)
    job.run.path.mkdir(parents=True)
    return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run


class Steps:
    """One model that makes each optimizer step with its map or without, as fairtune's loop does, on the same batches.

    One, because two of the same make a step in times that differ by a per cent or two: their memory lies elsewhere.
    """

    def __init__(self, run: Any) -> None:
        from fairtune.methods.bpsom.model import active_head

        self.run, self.head, self.methods, self.done = run, active_head(run.model), run.methods, 0
        self.forward = self.head.forward
        self.order = run.objective.order(BATCH, 0, 0)

    def use(self, watched: bool) -> None:
        """Without: the head is not given the labels, so that no map looks on, in a run without the method."""
        self.head.forward = self.forward if watched else lambda x, _=None: self.forward(x)
        self.run.methods = self.methods if watched else []

    def seconds(self, watched: bool) -> tuple[float, float]:
        """A whole optimizer step by the clock, and the processor's time for it, which other work disturbs less."""
        from fairtune.training.optimizer import gradient_norm, step_clipped

        run = self.run
        self.use(watched)
        batch = run.objective.batch(self.order[self.done // SIDES % len(self.order)], run.device)
        self.done += 1
        started, before = time.perf_counter(), time.process_time()
        run._forward_backward([batch])
        step_clipped(run.optimizer, run._trainable, gradient_norm(run._trainable), run.train.clip)
        run.optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started, time.process_time() - before

    def head_seconds(self, watched: bool) -> float:
        """Forward and backward of the head alone, on the states of a made batch."""
        import torch

        self.use(watched)
        states, labels = torch.randn(BATCH, self.head.hidden.in_features, requires_grad=True), torch.arange(BATCH) % 2
        started = time.perf_counter()
        torch.nn.functional.cross_entropy(self.head(states, labels), labels).backward()
        seconds = time.perf_counter() - started
        self.head.zero_grad(set_to_none=True)
        return seconds


def in_turn(title: str, turns: int, sides: Sequence[Callable[[], Any]]) -> Any:
    """What each side answers in each turn, [turns, sides, ...]; the order reverses from turn to turn."""
    import numpy as np

    found = []
    for turn in range(turns):
        order = list(range(len(sides)))[:: 1 if turn % 2 == 0 else -1]
        answers = {place: sides[place]() for place in order}
        found.append([answers[place] for place in range(len(sides))])
        print(f"\r{title}: {turn + 1} of {turns}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return np.array(found)


def show_pairs(title: str, seconds: Any) -> None:
    """The first side over the second, pair by pair."""
    import numpy as np

    print(f"  {title}, n = {len(seconds)}, {1000 * np.median(seconds[:, 1, 0]):.0f} ms per step")
    for kind, of_kind in (("by the clock", seconds[..., 0]), ("processor", seconds[..., 1])):
        ratios = of_kind[:, 0] / of_kind[:, 1]
        draws = np.random.default_rng(0).choice(ratios, (RESAMPLES, len(ratios)))
        low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
        quarter, middle, rest = np.quantile(ratios, (0.25, 0.5, 0.75))
        quick = np.quantile(of_kind, 0.25, axis=0)
        print(
            f"    {kind:<12}: median {middle:.4f} ({low:.4f} to {high:.4f}), quartiles {quarter:.3f} to {rest:.3f}; "
            f"of the quickest quarters {quick[0] / quick[1]:.4f}",
            flush=True,
        )


def measure_steps(pairs: int, examples: int) -> None:
    import numpy as np

    print(f"step: with a map over without, MiniLM, batch {BATCH}, {UNITS} units, {GRID} x {GRID} cells", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        run = ready(Path(scratch), 1, examples)
        steps = Steps(run)
        sides = [lambda watched=watched: steps.seconds(watched) for watched in (True, False, False)]
        in_turn("warming up", WARM_UP, sides)
        steps.use(True)
        run._call_methods("after_epoch")  # labels the map
        seconds = in_turn("steps", pairs, sides)
        show_pairs("labelled map, alpha .25", seconds[:, [0, 1]])
        show_pairs("A/A: both without", seconds[:, [2, 1]])
        heads = in_turn("heads", HEADS, [lambda: steps.head_seconds(True), lambda: steps.head_seconds(False)])
        more = np.subtract(*np.median(heads, axis=0))
        share = more / np.median(seconds[:, 1, 0])
        print(f"  the head alone: {1000 * more:.2f} ms more, {100 * share:.2f} % of a step", flush=True)
        run.log.close()


def measure_labelling(rounds: int, examples: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run = ready(Path(scratch), 1, examples)

        def timed(work: Callable[[], Any]) -> tuple[float, float]:
            started, before = time.perf_counter(), time.process_time()
            work()
            return time.perf_counter() - started, time.process_time() - before

        def label() -> None:
            run._call_methods("after_epoch")

        def evaluate() -> None:
            run.objective.evaluate(run.model, "train", run.device, run.methods, lambda: None)

        label(), evaluate()
        seconds = in_turn("labelling", rounds, [lambda: timed(label), lambda: timed(evaluate)])
        run.log.close()
    ratios = seconds[:, 0] / seconds[:, 1]
    print(
        f"labelling: a labelling pass over an evaluation of the same {examples} examples, n = {rounds}: "
        f"by the clock {_middle(ratios[:, 0])}, processor {_middle(ratios[:, 1])}; "
        f"{sorted(seconds[:, 1, 0])[rounds // 2]:.1f} s an evaluation",
        flush=True,
    )


def _middle(values: Any, form: str = ".3f") -> str:
    """Median and range."""
    import numpy as np

    return f"{np.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def activations(examples: int) -> Any:
    """What the map of an untrained head sees of the training examples, [examples, units]."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        run = ready(Path(scratch), 1, examples)
        head, seen = run.model.bpsom, []
        hook = head.out.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        run.objective.evaluate(run.model, "train", run.device, run.methods, lambda: None)
        hook.remove()
        run.log.close()
    found = torch.cat(seen)
    return found[torch.randperm(len(found), generator=torch.Generator().manual_seed(0))]


def schedules() -> tuple[list[int], list[float]]:
    """Radius and rate of each epoch."""
    from fairtune.som.schedules import radius_at, rate_at

    left = [(EPOCHS - epoch) / EPOCHS for epoch in range(1, EPOCHS + 1)]
    return [radius_at(share, RADIUS) for share in left], [rate_at(share, RATE) for share in left]


def fairtune_map(x: Any, start: Any, update: Any) -> Callable[[], Any]:
    """Trains a map from the start; returns its prototypes."""
    from fairtune import SOM

    def fit() -> Any:
        som = SOM(x.shape[1], GRID, update=update)
        som.prototypes.copy_(start)
        return som.fit(x, epochs=EPOCHS, batch_size=MAP_BATCH, radius=RADIUS, rate=RATE, start="present").prototypes

    return fit


def minisom_map(x: Any, start: Any) -> Callable[[], Any]:
    """MiniSom with the same rule: within the radius, in Chebyshev's steps, the rate halves with each."""
    import numpy as np
    import torch
    from minisom import MiniSom

    from fairtune.core.grid import Grid

    radii, rates = schedules()
    steps = Grid.of(GRID).distances().reshape(GRID, GRID, GRID, GRID)
    near = {radius: np.where(steps <= radius, 0.5**steps, 0.0) for radius in set(radii)}
    data, weights = x.double().numpy(), start.double().numpy().reshape(GRID, GRID, -1)

    def fit() -> Any:
        som = MiniSom(GRID, GRID, data.shape[1], random_seed=0, decay_function=lambda _, epoch, __: rates[epoch])
        som._sigma_decay_function = lambda _, epoch, __: radii[epoch]
        som.neighborhood = lambda winner, radius: near[radius][winner]
        som._weights = weights.copy()
        som.train(data, EPOCHS, random_order=True, use_epochs=True)
        return torch.from_numpy(som._weights).reshape(GRID * GRID, -1)

    return fit


def torchsom_map(x: Any, start: Any, times: float = 1.0, alone: bool = False) -> Callable[[], Any]:
    """torchsom with the same radii and rates.

    Args:
        times: what the rates are multiplied by.
        alone: leave out the errors that its `fit` measures after each batch.
    """
    import torch
    from torchsom import SOM

    radii, rates = schedules()

    def fit() -> Any:
        som = SOM(
            GRID, GRID, x.shape[1], epochs=EPOCHS, batch_size=MAP_BATCH, neighborhood_function="bubble", device="cpu",
            random_seed=0,
        )  # fmt: skip
        som.weights.data = start.reshape(GRID, GRID, -1).clone()
        som.sigma_schedule, som.lr_schedule = torch.tensor(radii).float(), torch.tensor(rates) * times
        if not alone:
            som.fit(x, verbose=False)
        for epoch in range(EPOCHS if alone else 0):
            for batch in torch.split(x[torch.randperm(len(x))], MAP_BATCH):
                som._update_weights(batch, som.identify_bmus(batch), som.lr_schedule[epoch], som.sigma_schedule[epoch])
        return som.weights.data.reshape(GRID * GRID, -1)

    return fit


def measure_maps(rounds: int, examples: int) -> None:
    import torch

    from fairtune import SOM

    x = activations(examples)
    start = x[: GRID * GRID]
    sides = {update: fairtune_map(x, start, update) for update in ("batch", "sequential")}
    if importlib.util.find_spec("minisom"):
        sides["MiniSom"] = minisom_map(x, start)
    if importlib.util.find_spec("torchsom"):
        sides["torchsom, fit"] = torchsom_map(x, start)
        sides["torchsom, steps alone"] = torchsom_map(x, start, alone=True)
        sides["torchsom, rate x batch"] = torchsom_map(x, start, times=MAP_BATCH, alone=True)
    judge, errors = SOM(x.shape[1], GRID), {name: [] for name in sides}

    def error(prototypes: Any) -> tuple[float, float]:
        judge.prototypes.copy_(prototypes)
        return judge.quantisation_error(x), judge.topographic_error(x)

    def timed(name: str) -> float:
        started = time.perf_counter()
        prototypes = sides[name]()
        seconds = time.perf_counter() - started
        errors[name].append(error(prototypes))
        return seconds

    print(
        f"maps: {len(x)} x {x.shape[1]} activations, {GRID} x {GRID} cells, {EPOCHS} epochs, radii {schedules()[0]}, batches of "
        f"{MAP_BATCH}; before: error {error(start)[0]:.4f}",
        flush=True,
    )
    with torch.no_grad():
        seconds = in_turn("maps", rounds, [lambda name=name: timed(name) for name in sides])
    for place, name in enumerate(sides):
        quantisation, topographic = (sorted(found)[rounds // 2] for found in zip(*errors[name], strict=True))
        print(
            f"  {name:<22} {_middle(seconds[:, place], '.2f')} s, {_middle(seconds[:, place] / seconds[:, 0], '.2f')} x batch's; "
            f"quantisation error {quantisation:.4f}, topographic {topographic:.3f}",
            flush=True,
        )
    missing = [name for name in ("minisom", "torchsom") if not importlib.util.find_spec(name)]
    if missing:
        print(f"  not installed, so not measured: {', '.join(missing)} (pip install {' '.join(missing)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="+", choices=["step", "maps", "labelling"], default=["step", "maps", "labelling"]
    )
    parser.add_argument("--pairs", type=int, default=200, help="pairs of steps")
    parser.add_argument("--rounds", type=int, default=5, help="turns of maps and labelling")
    parser.add_argument("--examples", type=int, default=5000, help="training examples")
    chosen = parser.parse_args()
    from fairtune.execution.executors.slots import worker_environment

    if "MALLOC_TOP_PAD_" not in os.environ:  # glibc reads its settings at the start: begin again as a worker would
        os.execve(sys.executable, [sys.executable, *sys.argv], worker_environment("cpu"))
    if "step" in chosen.parts:
        measure_steps(chosen.pairs, chosen.examples)
    if "maps" in chosen.parts:
        measure_maps(chosen.rounds, chosen.examples)
    if "labelling" in chosen.parts:
        measure_labelling(chosen.rounds, chosen.examples)


if __name__ == "__main__":
    main()
