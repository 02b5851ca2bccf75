"""What a corruption is: a way in which an extracted title goes wrong, registered as a kind, and the draws it may ask for."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

CORRECT = "correct"
"""What the column `kind` says of a correct title."""
T = TypeVar("T")


class Draws:
    """What a corruption may ask for: chance, numbers, a choice, another title.

    Args:
        another: gives a title that nothing else uses.
    """

    def __init__(self, seed: int | str, another: Callable[[], str]) -> None:
        self._random = random.Random(seed)
        self.another = another

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def weighted(self, choices: Sequence[tuple[float, T]]) -> T:
        """One of the choices, each as likely as its weight."""
        place = self._random.random() * sum(weight for weight, _ in choices)
        for weight, choice in choices:
            place -= weight
            if place < 0:
                return choice
        return choices[-1][1]

    def some(self, choices: Sequence[T], low: int, high: int) -> list[T]:
        """Between `low` and `high` of the choices, none twice."""
        left, taken = list(choices), []
        for _ in range(min(self.number(low, high), len(left))):
            taken.append(left.pop(self.number(0, len(left) - 1)))
        return taken

    def shuffled(self, values: Sequence[T]) -> list[T]:
        mixed = list(values)
        for place in range(len(mixed) - 1, 0, -1):
            other = self.number(0, place)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed


Corrupt = Callable[[str, Draws], str | None]
"""Makes a wrong title of a correct one; None where that title does not lend itself to it."""


@dataclass(frozen=True)
class Kind:
    """One way in which extraction fails.

    Args:
        weight: how often it occurs, relative to the other kinds.
        titles: how many correct titles one wrong title uses up.
        keeps_letters: whether the letters stay as they are, and only case or spacing changes.
        help: one line, the docstring of `corrupt`.
    """

    name: str
    weight: float
    titles: int
    keeps_letters: bool
    help: str
    corrupt: Corrupt


REGISTERED: dict[str, Kind] = {}


def kind(weight: float, titles: int = 1, keeps_letters: bool = False) -> Callable[[Corrupt], Corrupt]:
    """Register a corruption under its function's name; its docstring is the help text."""

    def add(corrupt: Corrupt) -> Corrupt:
        name, text = corrupt.__name__, (corrupt.__doc__ or "").strip()
        if name in REGISTERED or name == CORRECT:
            raise ValueError(f"kind '{name}' is registered twice")
        if not text or "\n" in text or weight <= 0:
            raise ValueError(f"kind '{name}' needs a docstring of one line and a weight above 0")
        REGISTERED[name] = Kind(name, weight, titles, keeps_letters, text, corrupt)
        return corrupt

    return add
