"""The registry of kinds: each way an extracted title goes wrong, with its weight and its help text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.titles.draws import Draws

Corrupt = Callable[[str, Draws], str | None]
"""Makes a wrong title of a correct one; None where that title does not lend itself to it."""
CORRECT = "correct"
"""What the column `kind` says of a correct title."""


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


_KINDS: dict[str, Kind] = {}


def kind(weight: float, titles: int = 1, keeps_letters: bool = False) -> Callable[[Corrupt], Corrupt]:
    """Register a corruption under its function's name; its docstring is the help text."""

    def add(corrupt: Corrupt) -> Corrupt:
        name, text = corrupt.__name__, (corrupt.__doc__ or "").strip()
        if name in _KINDS or name == CORRECT:
            raise ValueError(f"kind '{name}' is registered twice")
        if not text or "\n" in text or weight <= 0:
            raise ValueError(f"kind '{name}' needs a docstring of one line and a weight above 0")
        _KINDS[name] = Kind(name, weight, titles, keeps_letters, text, corrupt)
        return corrupt

    return add


def kinds() -> dict[str, Kind]:
    """Every kind by name, in an order that does not depend on what was imported first."""
    from fairtune.tasks.titles import cuts, lines, merges, noise

    rooms = [module.__name__ for module in (cuts, lines, merges, noise)]
    return dict(sorted(_KINDS.items(), key=lambda item: rooms.index(item[1].corrupt.__module__)))


def weigh(changes: Mapping[str, float]) -> dict[str, float]:
    """The weight of each kind, some of them changed.

    Raises:
        DataError: an unknown kind, a negative weight, or nothing left.
    """
    known = kinds()
    for name, weight in changes.items():
        if name not in known:
            raise DataError(f"weight: no kind '{name}'; kinds: {one_of(known)}.{nearest(name, known)}")
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight: {name}={weight:g}; a weight is 0 (never) or a number above it.")
    weights = {name: float(changes.get(name, known[name].weight)) for name in known}
    if not sum(weights.values()):
        raise DataError("weight: every kind has weight 0; leave at least one above it.")
    return weights
