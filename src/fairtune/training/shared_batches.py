"""A batch that several processes share: what of it is whose, and what must be the same for it however it is divided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from fairtune.tasks.tokens.encoded_splits import Indices
from fairtune.training.ranks import Ranks


class Sized(Protocol):
    def sizes(self, rows: Indices) -> tuple[int, int]:
        """Real tokens of rows, and padding."""


@dataclass
class SharedBatch:
    """A batch's examples among the processes, in its order.

    A batch may have fewer examples than there are processes. One that gets none goes through the first example, which then counts
    for nothing: so every process makes the same calls, and takes part in what methods ask of all.

    Args:
        rows: the whole batch.
        generator: of numbers that are the same in every process.
    """

    rows: Indices
    ranks: Ranks
    objective: Sized
    generator: torch.Generator
    _drawn: dict[tuple[int, int], Tensor] = field(default_factory=dict, init=False)
    _gathered: list[Tensor] = field(default_factory=list, init=False)
    _weight: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._asked = 0
        self.counts = self.ranks.counts(len(self.rows))
        own = self.ranks.own(self.rows)
        self.idle = not len(own)
        self.own: Indices = self.rows[:1] if self.idle else own
        self.first = 0 if self.idle else sum(self.counts[: self.ranks.rank])

    def begin(self) -> None:
        """Called before the first pass; again where memory ran out and the passes are made in smaller parts.

        What was asked of the other processes is then remembered and not asked a second time, since they have gone on.
        """
        self._asked = 0

    def total(self, weight: float) -> float:
        """The weight of the whole batch from that of this process's rows."""
        if self._weight is None:
            self._weight = self.ranks.total(0.0 if self.idle else weight)
        return self._weight

    def gathered(self, own: Tensor) -> Tensor:
        """Rows of the whole batch from this process's: [copies, rows, ...]."""
        if self._asked == len(self._gathered):
            rows = own[:, : self.counts[self.ranks.rank]].transpose(0, 1).contiguous()
            self._gathered.append(self.ranks.gathered(rows, self.counts).transpose(0, 1))
        self._asked += 1
        return self._gathered[self._asked - 1]

    def part(self, whole: Tensor) -> Tensor:
        """This process's rows of the whole batch's: the reverse."""
        return whole[:, self.first : self.first + len(self.own)]

    def tokens(self, first: int, end: int) -> int:
        """Real tokens of some rows."""
        return self.objective.sizes(self.rows[first:end])[0] if end > first else 0

    def drawn(self, copies: int, width: int) -> Tensor:
        """Numbers from 0 to 1 for every token of the whole batch, [copies, tokens, width]: drawn once, and the same everywhere."""
        if (copies, width) not in self._drawn:
            total = self.tokens(0, len(self.rows))
            self._drawn[copies, width] = torch.rand(copies * total, width, generator=self.generator)
        return self._drawn[copies, width].view(copies, -1, width)


@dataclass(frozen=True)
class PlaceInBatch:
    """Where in a shared batch some rows of this process are.

    Args:
        before: rows of this process before these.
    """

    batch: SharedBatch
    before: int
    rows: int

    def uniform(self, tokens: int, width: int) -> Tensor:
        """Numbers from 0 to 1 for the rows' tokens, as one process would have drawn them for these.

        Args:
            tokens: real ones of the rows; a method may have made copies of all.
        """
        start = self.batch.first + self.before
        first, own = self.batch.tokens(0, start), self.batch.tokens(start, start + self.rows)
        return self.batch.drawn(tokens // own, width)[:, first : first + own].flatten(0, 1)
