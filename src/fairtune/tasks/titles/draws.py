"""Seeded draws, and where a corruption gets other titles from."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

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
