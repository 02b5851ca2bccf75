"""The classic BP-SOM: a sigmoid network with a map on its hidden units, learning online, step by step as it was published."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fairtune import SOM
from fairtune.som.schedules import radius_at, rate_at

Array = NDArray[np.float64]
HIGH, LOW = 0.9, 0.1  # targets of the output units
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

    carried = 0  # how often the mean activations of the pass before are counted again

    def __init__(self, settings: Settings, into: Array, out: Array, som: SOM) -> None:
        self.settings = settings
        self.into, self.out, self.som = into, out, som
        self.into_step, self.out_step = np.zeros_like(into), np.zeros_like(out)
        self.learned = 0
        self.reliable: set[int] = (
            set()
        )  # classes of which a cell is reliable; for the others there is nothing to look for
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
        self.mean = self.mean * self.carried / len(part.x)
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
        return Score(
            epoch, False, number, float(error), 100 * float((o.argmax(1) != part.y).mean()), units=len(self.mean)
        )

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
                kept += (
                    [unit + 1] if unit + 1 < len(std) else []
                )  # it moves into the free slot and waits for the next round
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


def new_network(settings: Settings, inputs: int, outputs: int, seed: int) -> Network:
    """Weights uniform in -.5 to .5."""
    random = np.random.default_rng(seed)
    into = random.uniform(-0.5, 0.5, (inputs + 1, settings.hidden))
    out = random.uniform(-0.5, 0.5, (settings.hidden + 1, outputs))
    som = SOM(settings.hidden, settings.grid, outputs, update="sequential", seed=seed, dtype=torch.float64)
    return Network(settings, into, out, som)


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def train(
    network: Network, training: Part, development: Part, test: Part, tell: Callable[[Score], None]
) -> tuple[int, Network]:
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
