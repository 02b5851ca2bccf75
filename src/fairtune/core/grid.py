"""Where the cells of a map are: numbers, distances in steps, neighbours and centres. No torch: the report draws with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairtune.core.errors import ModelError, nearest, one_of

Topology = Literal["rectangular", "hexagonal"]
TOPOLOGIES: tuple[Topology, ...] = ("rectangular", "hexagonal")


@dataclass(frozen=True)
class Grid:
    """A map of `columns` x `rows` cells; the cell in column x and row y has the number x * rows + y.

    On a rectangular grid a cell has up to eight neighbours and distances are Chebyshev's. On a hexagonal grid it has up to six
    neighbours, the odd rows are shifted half a cell to the right, and distances are steps from cell to cell.
    """

    columns: int
    rows: int
    topology: Topology = "rectangular"

    def __post_init__(self) -> None:
        if not all(type(size) is int and size >= 1 for size in (self.columns, self.rows)):
            raise ModelError(
                f"grid: {self.columns!r} x {self.rows!r} has no cells; give one whole number of at least 1, or [columns, rows]"
            )
        if self.topology not in TOPOLOGIES:
            hint = nearest(self.topology, TOPOLOGIES)
            raise ModelError(f"topology: '{self.topology}' is not known; allowed are {one_of(TOPOLOGIES)}.{hint}")

    @classmethod
    def of(cls, grid: int | Sequence[int], topology: Topology = "rectangular") -> Grid:
        """A square grid from one number, any other from (columns, rows)."""
        sizes = list(grid) if isinstance(grid, Sequence) else [grid, grid]
        if len(sizes) != 2:
            raise ModelError(f"grid: {sizes} is not a size; give one whole number, or [columns, rows]")
        return cls(sizes[0], sizes[1], topology)

    @property
    def cells(self) -> int:
        return self.columns * self.rows

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Column and row of each cell."""
        return np.divmod(np.arange(self.cells, dtype=np.int64), self.rows)

    def distances(self) -> NDArray[np.int64]:
        """Steps between any two cells, [cells, cells]."""
        x, y = self._places()
        if self.topology == "hexagonal":
            x = x - (y - y % 2) // 2  # slanted columns, so that a step along a diagonal changes one coordinate only
        across, along = x[:, None] - x, y[:, None] - y
        straight: NDArray[np.int64] = np.maximum(np.abs(across), np.abs(along))
        return np.maximum(straight, np.abs(across + along)) if self.topology == "hexagonal" else straight

    def positions(self) -> NDArray[np.float64]:
        """Centres for drawing, [cells, 2] as (right, down); neighbours in a row are 1 apart."""
        x, y = self._places()
        if self.topology == "hexagonal":
            return np.stack([x + 0.5 * (y % 2), y * np.sqrt(3) / 2], axis=1)
        return np.stack([x, y], axis=1).astype(np.float64)
