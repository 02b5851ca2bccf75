"""A self-organising map whose cells carry class labels and reliabilities."""

from __future__ import annotations

from typing import Literal, Self

import torch
from torch import Tensor

from fairtune.core.errors import DataError, ModelError, one_of
from fairtune.core.grid import Grid
from fairtune.som.distances import (
    first_nearest,
    has_topographic_error,
    in_parts,
    u_matrix,
)
from fairtune.som.labels import Labelling
from fairtune.som.prototypes import Prototypes, check_step, checked_classes, checked_rows
from fairtune.som.schedules import radius_at, rate_at

Start = Literal["examples", "present"]
STARTS: tuple[Start, ...] = ("examples", "present")


class SOM(Prototypes):
    """A map of prototypes that can be trained alone, labelled and measured.

    Args:
        features: width of the examples.
        grid: cells per side, or (columns, rows).
        classes: how many classes labels may come from; 0 for a map without labels.
        update: `batch` moves to a whole batch in one go; `sequential` is the classic way, example by example.
        seed: of the start, uniform in .2 to .8: around the middle of a sigmoid's range.
        dtype: float32 or float64; examples may come in any.
    """

    @torch.no_grad()
    def fit(
        self,
        x: Tensor,
        labels: Tensor | None = None,
        *,
        epochs: int = 10,
        batch_size: int = 64,
        radius: tuple[int, int] = (2, 0),
        rate: tuple[float, float] = (0.2, 0.05),
        start: Start = "examples",
        seed: int = 0,
    ) -> Self:
        """Trains the map on the examples, in another order each epoch, then labels it if labels are given.

        Args:
            radius: (high, low), see `radius_at`.
            rate: (high, low), see `rate_at`.
            start: from examples drawn at random, or from the present prototypes.
            seed: of the start and the order.
        """
        rows = checked_rows(x, self.prototypes)
        if labels is not None:
            labels = checked_classes(labels, len(rows), self.classes, rows.device)
        _check_data(self.grid, rows, labels)
        for end in (0, 1):
            check_step(radius[end], rate[end])
        if epochs < 1 or batch_size < 1:
            raise ModelError(f"fit: epochs {epochs} and batch_size {batch_size} must be at least 1")
        if start not in STARTS:
            raise ModelError(f"start: '{start}' is not known; allowed are {one_of(STARTS)}")
        generator = torch.Generator().manual_seed(seed)
        if start == "examples":
            chosen = torch.randperm(len(rows), generator=generator)[: self.grid.cells]
            self.prototypes.copy_(rows[chosen.to(rows.device)])
        for epoch in range(1, epochs + 1):
            left = (epochs - epoch) / epochs
            order = torch.randperm(len(rows), generator=generator).to(rows.device)
            for batch in torch.split(rows[order], batch_size):
                self.move(batch, radius_at(left, radius), rate_at(left, rate))
        if labels is not None:
            self.label(rows, labels)
        return self

    def labelling(self) -> Labelling:
        """A labelling pass to feed batch by batch."""
        if self.classes == 0:
            raise ModelError(
                "map: it was made without classes, so its cells have no labels; make it with SOM(..., classes=n)"
            )
        return Labelling(self)

    def label(self, x: Tensor, classes: Tensor) -> Labelling:
        """A whole labelling pass over these examples."""
        rows, classes = self.checked(x, classes)
        labelling = self.labelling()
        for part, of_part in zip(in_parts(rows), in_parts(classes), strict=True):
            labelling.add(part, of_part)
        return labelling.finish()

    def quantisation_error(self, x: Tensor) -> float:
        """Mean Euclidean distance of an example to its winner."""
        rows = self._some(x)
        total = 0.0
        for part in in_parts(rows):
            total += float(self.winners(part).distances.double().sqrt().sum())
        return total / len(rows)

    @torch.no_grad()
    def topographic_error(self, x: Tensor) -> float:
        """Share of the examples whose two nearest cells are not neighbours."""
        rows = self._some(x)
        total = 0
        for part in in_parts(rows):
            total += int(has_topographic_error(self.distances_to_cells(part), self.steps).sum())
        return total / len(rows)

    @torch.no_grad()
    def u_matrix(self) -> Tensor:
        """Mean Euclidean distance of each cell's prototype to those of its direct neighbours, [cells]."""
        return u_matrix(self.prototypes, self.steps)

    @torch.no_grad()
    def hits(self, x: Tensor) -> Tensor:
        """How many examples each cell wins, [cells]."""
        rows = checked_rows(x, self.prototypes)
        cells = [first_nearest(self.distances_to_cells(part)) for part in in_parts(rows)]
        return torch.bincount(torch.cat(cells), minlength=self.grid.cells)

    def _some(self, x: Tensor) -> Tensor:
        """Checked examples, of which there is at least one."""
        rows = checked_rows(x, self.prototypes)
        if not len(rows):
            raise DataError("map: a mean over no examples says nothing; give at least one")
        return rows


def _check_data(grid: Grid, rows: Tensor, labels: Tensor | None) -> None:
    if len(rows) < grid.cells:
        raise DataError(
            f"grid: {grid.columns} x {grid.rows} has {grid.cells} cells for {len(rows)} examples; "
            f"use a smaller grid or more examples"
        )
    if labels is not None and bool((labels == labels[0]).all()):
        raise DataError(f"map: all examples are of class {int(labels[0])}; labels need at least two classes")
