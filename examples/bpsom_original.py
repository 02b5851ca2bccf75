"""Reads the files of the original BP-SOM program and follows it in what its description does not say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from bpsom_network import Array, Network, Part, Score, Settings, train

from fairtune import SOM

ALPHABET = "_'-.abcdefghijklmnopqrstuvwxyz"
LETTERS = 42  # inputs per letter; the last twelve are for accented letters


class Original(Network):
    """What the original program does beyond the description, as its trace shows it.

    An output within the error threshold rests, and so does its momentum. Weights from letters that are present move first, as
    they should. Then, if the *output* of a hidden unit's number does not rest, the unit's bias moves and the momentum of its other
    weights is applied, for letters that are present a second time. So it is for at least as many outputs as hidden units. The sum
    of a unit's activations in a learning pass starts at its last mean.
    """

    carried = 1

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


def read_part(path: Path, classes: list[str]) -> Part:
    """Rows of letters, a space and a class of one character; a letter is a one-hot vector over the alphabet."""
    rows = [line.rsplit(" ", 1) for line in path.read_text(encoding="latin-1").splitlines()]
    letters = np.array([[ALPHABET.index(letter) for letter in word] for word, _ in rows])
    x = np.eye(LETTERS)[letters].reshape(len(rows), -1)
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
    """Sizes, weights from each unit to the next layer, and one row per cell: label (from 1, 0 for none), per cent, prototype."""
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
