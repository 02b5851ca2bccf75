"""A task of two classes: whether a sentence is about fair or foul weather. A function gives the rows; files would do as well."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fairtune.tasks import register_task

FAIR, FOUL = ("sunny", "clear", "mild", "bright"), ("rainy", "stormy", "foggy", "icy")
PLACES = ("harbour", "valley", "city", "island", "forest")


def rows(seed: int, count: int) -> Iterator[dict[str, str]]:
    """The same rows in every process: they are drawn from a seed."""
    draws = random.Random(seed)
    for number in range(count):
        words = draws.choice((FAIR, FOUL)[number % 2])
        yield {
            "text": f"number {number}: the {draws.choice(PLACES)} is {words} and {draws.choice(PLACES)} too",
            "label": ("fair", "foul")[number % 2],
        }


register_task(
    "weather",
    about="Sentences about fair or foul weather, made by a function.",
    licence="CC0",
    train=lambda: rows(1, 200),
    validation=lambda: rows(2, 60),
    test=lambda: rows(3, 60),
    labels=("fair", "foul"),
)
