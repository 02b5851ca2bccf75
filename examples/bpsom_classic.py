"""The classic BP-SOM of 1997 with fairtune's map: a sigmoid network that learns online and prunes its hidden units.

    python examples/bpsom_classic.py trace FOLDER    # trains from a start state of the original program, prints its score lines
    python examples/bpsom_classic.py parity          # learns 12-bit parity from a part of all rows, and prunes

Everything is in float64, so that a run of the original program can be followed to the last printed digit.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fairtune import SOM
from fairtune.som.schedules import radius_at, rate_at

Array = NDArray[np.float64]
HIGH, LOW = 0.9, 0.1  # targets of the output units
ALPHABET = "_'-.abcdefghijklmnopqrstuvwxyz" + "àáâäçèéêëïöü"
IMPROVEMENT = 0.005  # what the development error must fall by to be better at the same accuracy


@dataclass
class Settings:
    epochs: int
    hidden: int
    grid: int
    patience: int
    alpha: float = 0.25
    reliability: float = 0.95
    prune: float = 0.02
    lr: float = 0.15
    momentum: float = 0.4
    momentum_after: int = 100
    ignore: float = 0.02
    radius: tuple[int, int] = (2, 0)
    som_lr: tuple[float, float] = (0.2, 0.05)


@dataclass
class Score:
    epoch: int
    learning: bool
    part: int  # 1 training, 2 development, 3 test
    error: float
    wrong: float  # per cent
    used: float = 0.0  # per cent of the examples whose SOM error was used
    best: bool = False
    units: int = 0

    def line(self, epochs: int) -> str:
        return (
            f"{self.epoch}/{epochs} LRN={self.learning:d} MAT={self.part} MSE={self.error:.3f} CE={self.wrong:6.2f} "
            f"USE SOM1={self.used:5.1f} {'*' if self.best else ''}"
        )


@dataclass
class Part:
    """Inputs and classes of one file."""

    x: Array
    y: NDArray[np.int64]


class Network:
    """Inputs -> sigmoid units with a map -> sigmoid outputs; row 0 of the weights is the bias."""

    def __init__(self, settings: Settings, into: Array, out: Array, som: SOM) -> None:
        self.settings = settings
        self.into, self.out, self.som = into, out, som
        self.into_step, self.out_step = np.zeros_like(into), np.zeros_like(out)
        self.learned = 0
        self.reliable: set[int] = set()  # classes of which a cell is reliable; for the others there is nothing to look for
        self.mean = np.zeros(into.shape[1])

    def activations(self, x: Array) -> Array:
        return sigmoid(self.into[0] + x @ self.into[1:])

    def outputs(self, h: Array) -> Array:
        return sigmoid(self.out[0] + h @ self.out[1:])

    def targets(self, y: NDArray[np.int64]) -> Array:
        return np.where(np.eye(self.out.shape[1], dtype=bool)[y], HIGH, LOW)

    def learn(self, part: Part, epoch: int) -> Score:
        """One pass in the order of the file, learning after each example."""
        left = (self.settings.epochs - epoch) / self.settings.epochs
        radius, rate = radius_at(left, self.settings.radius), rate_at(left, self.settings.som_lr)
        targets = self.targets(part.y)
        error = wrong = used = 0.0
        self.mean = np.zeros(self.into.shape[1])
        for x, y, target in zip(part.x, part.y, targets, strict=True):
            h = self.activations(x)
            o = self.outputs(h)
            self.mean += h / len(part.x)
            pull = self.pull(h, int(y), radius, rate)
            away = target - o
            example_error = float(away @ away)
            error += example_error
            wrong += int(o.argmax()) != y
            used += pull is not None
            if example_error > self.settings.ignore:
                self.correct(x, h, o, away, pull)
        n = len(part.x)
        return Score(epoch, True, 1, error / n, 100 * wrong / n, 100 * used / n, units=len(self.mean))

    def pull(self, h: Array, y: int, radius: int, rate: float) -> Array | None:
        """Moves the map towards the activations; the SOM error if a reliable cell of the example's class is there."""
        row, cell = torch.from_numpy(h)[None], -1
        if y in self.reliable:
            cell = int(self.som.partial_winners(row, torch.tensor([y])).cells)  # on the map before it moves
        self.som.update(row, radius, rate)
        reliability = float(self.som.reliability[cell])
        if cell < 0 or reliability < self.settings.reliability:
            return None
        return reliability * (self.som.prototypes[cell].numpy() - h)

    def correct(self, x: Array, h: Array, o: Array, away: Array, pull: Array | None) -> tuple[Array, Array]:
        """Back-propagation of one example; returns the hidden deltas without and with the SOM error."""
        settings = self.settings
        out_delta = np.where(np.abs(away) <= settings.ignore, 0.0, o * (1 - o) * away)
        plain = (self.out[1:] @ out_delta) * h * (1 - h)
        delta = plain if pull is None else (1 - settings.alpha) * plain + settings.alpha * pull
        momentum = settings.momentum if self.learned >= settings.momentum_after else 0.0
        self.learned += 1
        self.step(x, h, out_delta, delta, momentum)
        return plain, delta

    def step(self, x: Array, h: Array, out_delta: Array, delta: Array, momentum: float) -> None:
        """Gradient ascent with momentum."""
        for weights, step, source, target in (
            (self.out, self.out_step, h, out_delta),
            (self.into, self.into_step, x, delta),
        ):
            step *= momentum
            step[0] += self.settings.lr * target
            step[1:] += self.settings.lr * np.outer(source, target)
            weights += step

    def look(self, part: Part, epoch: int, number: int) -> Score:
        """One pass without learning."""
        o = self.outputs(self.activations(part.x))
        error = ((self.targets(part.y) - o) ** 2).sum(1).mean()
        return Score(epoch, False, number, float(error), 100 * float((o.argmax(1) != part.y).mean()), units=len(self.mean))

    def label(self, part: Part) -> Array:
        """Labels the map; the standard deviation of each unit around its mean of the learning pass."""
        h = self.activations(part.x)
        self.som.label(torch.from_numpy(h), torch.from_numpy(part.y))
        self.reliable = set(self.som.labels[self.som.reliability >= self.settings.reliability].tolist())
        return np.sqrt(((h - self.mean) ** 2).mean(0))

    def prune(self, std: Array) -> int:
        """Removes the units that hardly vary; what they gave on average goes into the next bias."""
        kept, unit = [], 0
        while unit < len(std):
            if std[unit] <= self.settings.prune and len(std) - unit + len(kept) > 1:
                self.out[0] += self.mean[unit] * self.out[1 + unit]
                kept += [unit + 1] if unit + 1 < len(std) else []  # it moves into the free slot and waits for the next round
                unit += 2
            else:
                kept.append(unit)
                unit += 1
        removed = len(std) - len(kept)
        if removed:
            rows = [0, *(1 + unit for unit in kept)]
            self.into, self.into_step = self.into[:, kept].copy(), self.into_step[:, kept].copy()
            self.out, self.out_step, self.mean = self.out[rows].copy(), self.out_step[rows].copy(), self.mean[kept]
            self.som.keep(torch.tensor(kept))
        return removed


class Original(Network):
    """The weight changes of the original program, as its trace shows them; needs at least as many outputs as hidden units.

    An output within the error threshold rests, and so does its momentum. Weights from letters that are present move first, as they
    should. Then, if the *output* of a hidden unit's number does not rest, the unit's bias moves and the momentum of its other weights
    is applied, for letters that are present a second time.
    """

    def step(self, x: Array, h: Array, out_delta: Array, delta: Array, momentum: float) -> None:
        lr, awake = self.settings.lr, np.flatnonzero(out_delta)
        grown = lr * np.outer(np.concatenate([[1.0], h]), out_delta)
        self.out_step[:, awake] = momentum * self.out_step[:, awake] + grown[:, awake]
        self.out[:, awake] += self.out_step[:, awake]
        present = 1 + np.flatnonzero(x)
        self.into_step[present] = momentum * self.into_step[present] + lr * delta
        self.into[present] += self.into_step[present]
        awake = awake[awake < len(delta)]
        self.into_step[:, awake] *= momentum
        self.into_step[0, awake] += lr * delta[awake]
        self.into[:, awake] += self.into_step[:, awake]


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def train(network: Network, training: Part, development: Part, test: Part, tell: Callable[[Score], None]) -> tuple[int, Network]:
    """Epochs of learning, labelling, development, pruning and test; returns the best epoch and the network as it was then."""
    best, best_score, since, pruned = (0, network), None, 0, False
    for epoch in range(1, network.settings.epochs + 1):
        tell(network.learn(training, epoch))
        std = network.label(training)
        tell(network.look(training, epoch, 1))
        score = network.look(development, epoch, 2)
        score.best = (
            best_score is None
            or score.wrong < best_score.wrong
            or (score.wrong == best_score.wrong and (pruned or score.error + IMPROVEMENT < best_score.error))
        )
        tell(score)
        since += 1
        if score.best:
            best, best_score, since, pruned = (epoch, copy.deepcopy(network)), score, 0, False
        if network.prune(std):
            pruned, since = True, 0
        tell(network.look(test, epoch, 3))
        if since >= network.settings.patience:
            break
    return best


def read_part(path: Path, classes: list[str]) -> Part:
    """Rows of letters, a space and a class of one character; a letter is a one-hot vector over the alphabet."""
    rows = [line.rsplit(" ", 1) for line in path.read_text(encoding="latin-1").splitlines()]
    letters = np.array([[ALPHABET.index(letter) for letter in word] for word, _ in rows])
    x = np.eye(len(ALPHABET))[letters].reshape(len(rows), -1)
    return Part(x, np.array([classes.index(name) for _, name in rows]))


def read_settings(path: Path) -> tuple[dict[str, str], Settings]:
    """The settings of a parameter file of the original program."""
    lines = (line.split(" = ", 1) for line in path.read_text(encoding="latin-1").splitlines() if " = " in line)
    raw = {key: value.strip() for key, value in lines}
    return raw, Settings(
        epochs=int(raw["N_EPOCHS"]),
        hidden=int(raw["BP-architecture"].split()[1]),
        grid=int(raw["SOM-architecture"].split()[1]),
        patience=int(raw["STOP_IF_NOTHING_DONE"]),
        alpha=float(raw["SOM_ERROR_USE"]),
        reliability=int(raw["RELIABILITY_THRESHOLD"]) / 100,
        prune=float(raw["PRUNE_THRESHOLD"]),
        lr=float(raw["BP_LEARN_RATE"]),
        momentum=float(raw["MOMENTUM"]),
        momentum_after=int(raw["MM_AFTER_N_EXAMPLES"]),
        ignore=float(raw["ERROR_LEARN_THRESHOLD"]),
        radius=(int(raw["SOM_MAX_CONTEXT"]), int(raw["SOM_MIN_CONTEXT"])),
        som_lr=(float(raw["SOM_MAX_LEARN_RATE"]), float(raw["SOM_MIN_LEARN_RATE"])),
    )


def read_state(path: Path, settings: Settings) -> Network:
    """Sizes, weights from each unit to the next layer, and a row a cell: label (from 1, 0 for none), per cent, prototype."""
    lines = path.read_text().splitlines()
    inputs, hidden, outputs = (int(size) for size in lines[0].split()[:3])
    side = int(lines[1].split()[1])
    numbers = iter([float(number) for line in lines[2:] for number in line.split()])
    into = _take(numbers, inputs + 1, hidden)
    out = _take(numbers, hidden + 1, outputs)
    cells = _take(numbers, side * side, 2 + hidden)
    som = SOM(hidden, side, outputs, update="sequential", dtype=torch.float64)
    som.labels.copy_(torch.from_numpy(cells[:, 0]).long() - 1)
    som.reliability.copy_(torch.from_numpy(cells[:, 1]) / 100)
    som.prototypes.copy_(torch.from_numpy(cells[:, 2:]))
    return Original(settings, into, out, som)


def _take(numbers: Iterator[float], rows: int, columns: int) -> Array:
    return np.array([next(numbers) for _ in range(rows * columns)]).reshape(rows, columns)


def print_rounded(network: Network) -> Network:
    """The network as it comes back from a file with four decimals."""
    again = copy.deepcopy(network)
    again.into, again.out = network.into.round(4), network.out.round(4)
    again.som.prototypes.copy_(network.som.prototypes.round(decimals=4))
    return again


def load(folder: Path) -> tuple[Network, list[Part]]:
    """The start state of a folder of the original program, and its training, development and test examples."""
    raw, settings = read_settings(folder / "t.prm")
    classes = [name[1:-1] for name in raw["ALL_LABELS"].split("|")]
    parts = [read_part(folder / raw[key], classes) for key in ("LRN", "VAL", "TST")]
    return read_state(folder / raw["OLD_ENV"], settings), parts


def trace(network: Network, parts: list[Part], tell: Callable[[Score], None]) -> Network:
    """Trains, then looks once more at the best network, as it comes back from its file; returns it."""
    epoch, best = train(network, *parts, tell)
    again = print_rounded(best)
    for number in (1, 3):
        tell(again.look(parts[number - 1], epoch, number))
    return best


def parity_parts(bits: int, training: int, development: int, seed: int) -> list[Part]:
    """All rows of the parity problem, shuffled, in three parts."""
    rows = np.random.default_rng(seed).permutation(2**bits)
    ones = (rows[:, None] >> np.arange(bits)) & 1
    whole = Part(np.where(ones, 1.0, -1.0), ones.sum(1) % 2)
    cuts = (slice(training), slice(training, training + development), slice(training + development, None))
    return [Part(whole.x[cut], whole.y[cut]) for cut in cuts]


def new_network(settings: Settings, inputs: int, outputs: int, seed: int) -> Network:
    """Weights uniform in -.5 to .5."""
    random = np.random.default_rng(seed)
    into = random.uniform(-0.5, 0.5, (inputs + 1, settings.hidden))
    out = random.uniform(-0.5, 0.5, (settings.hidden + 1, outputs))
    som = SOM(settings.hidden, settings.grid, outputs, update="sequential", seed=seed, dtype=torch.float64)
    return Network(settings, into, out, som)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("trace", help="follow a run of the original program").add_argument("folder", type=Path)
    parity = what.add_parser("parity", help="learn parity and prune")
    parity.add_argument("--bits", type=int, default=12)
    parity.add_argument("--training", type=int, default=2000, help="examples to learn from")
    parity.add_argument("--development", type=int, default=500, help="examples to choose the best epoch by")
    parity.add_argument("--hidden", type=int, default=20)
    parity.add_argument("--grid", type=int, default=7)
    parity.add_argument("--epochs", type=int, default=60)
    parity.add_argument("--lr", type=float, default=0.4)
    parity.add_argument("--momentum", type=float, default=0.4)
    parity.add_argument("--alpha", type=float, default=0.25)
    parity.add_argument("--prune", type=float, default=0.02)
    parity.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "trace":
        network, parts = load(asked.folder)
        trace(network, parts, lambda score: print(score.line(network.settings.epochs)))
        return
    settings = Settings(
        asked.epochs, asked.hidden, asked.grid, asked.epochs, asked.alpha, prune=asked.prune, lr=asked.lr, momentum=asked.momentum
    )
    parts = parity_parts(asked.bits, asked.training, asked.development, asked.seed)
    network = new_network(settings, asked.bits, 2, asked.seed)
    started, used = time.perf_counter(), 0.0

    def tell(score: Score) -> None:
        nonlocal used
        if score.learning:
            used = score.used
        elif score.part == 3 and (score.epoch % 10 == 0 or score.epoch == 1):
            print(
                f"epoch {score.epoch:4d}: {score.units:2d} units, test accuracy {100 - score.wrong:6.2f} %, "
                f"SOM error used for {used:5.1f} %, {time.perf_counter() - started:5.1f} s",
                flush=True,
            )

    epoch, best = train(network, *parts, tell)
    score = best.look(parts[2], epoch, 3)
    print(
        f"best epoch {epoch}: {score.units} of {settings.hidden} units, {100 - score.wrong:.2f} % of "
        f"{len(parts[2].y)} unseen rows right"
    )


if __name__ == "__main__":
    main()
