"""A self-organising map whose cells carry class labels and reliabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from fairtune.core.errors import ModelError, nearest, one_of
from fairtune.core.grid import Grid, Topology
from fairtune.som.checks import check_step, checked_classes, checked_rows
from fairtune.som.distances import (
    Winners,
    first_nearest,
    in_parts,
    last_nearest_labelled,
    remoteness,
    squared_distances,
    winners_of,
)
from fairtune.som.fitting import fit_map
from fairtune.som.labelling import Labelling
from fairtune.som.measures import quantisation_error, topographic_error, u_matrix
from fairtune.som.moves import move_batch, move_one_by_one

UPDATES = ("batch", "sequential")


class SOM(nn.Module):
    """A map of prototypes: buffers only, nothing of it is in an autograd graph.

    Cells are numbered as in `Grid`. A cell's label is -1 until a labelling pass gives it one.

    Args:
        features: width of the examples.
        grid: cells a side, or (columns, rows).
        classes: how many classes labels may come from; 0 for a map without labels.
        update: `batch` moves to a whole batch in one go; `sequential` is the classic way, example by example.
        seed: of the start, uniform in .2 to .8: around the middle of a sigmoid's range.
        dtype: float32 or float64; examples may come in any.
    """

    prototypes: Tensor
    labels: Tensor
    reliability: Tensor
    counts: Tensor
    steps: Tensor
    halves: Tensor

    def __init__(
        self,
        features: int,
        grid: int | Sequence[int] = 10,
        classes: int = 0,
        *,
        topology: Topology = "rectangular",
        update: Literal["batch", "sequential"] = "batch",
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.grid = Grid.of(grid, topology)
        if features < 1:
            raise ModelError(f"features: {features} is not a width; give a whole number of at least 1")
        if classes < 0 or classes == 1:
            raise ModelError(f"classes: {classes} cannot be told apart; give at least 2, or 0 for a map without labels")
        if update not in UPDATES:
            raise ModelError(
                f"update: '{update}' is not known; allowed are {one_of(UPDATES)}.{nearest(update, UPDATES)}"
            )
        if dtype not in (torch.float32, torch.float64):
            raise ModelError(
                f"dtype: a map in {dtype} would round its small steps away; use torch.float32 or torch.float64"
            )
        self.classes = classes
        self.mode = update
        cells, generator = self.grid.cells, torch.Generator().manual_seed(seed)
        start = 0.2 + 0.6 * torch.rand(cells, features, generator=generator, dtype=dtype)
        self.register_buffer("prototypes", start)
        self.register_buffer("labels", torch.full((cells,), -1, dtype=torch.int64))
        self.register_buffer("reliability", torch.zeros(cells, dtype=dtype))
        self.register_buffer("counts", torch.zeros(cells, classes, dtype=torch.int64))
        self.register_buffer("steps", torch.from_numpy(self.grid.distances()), persistent=False)
        self.register_buffer("halves", torch.exp2(-self.steps.to(dtype)), persistent=False)

    @property
    def features(self) -> int:
        """Width of the examples."""
        return self.prototypes.shape[1]

    def extra_repr(self) -> str:
        grid = self.grid
        return (
            f"features={self.features}, {grid.columns}x{grid.rows} {grid.topology}, classes={self.classes}, {self.mode}"
        )

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> SOM:
        """Goes to a device or to float64 with its model, but stays as exact as it is where the model goes to half precision."""
        kept = {name: getattr(self, name) for name in ("prototypes", "reliability", "halves")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = getattr(self, name)
            if after.dtype.itemsize < 4:
                setattr(self, name, before.to(after.device))
        return self

    def checked(self, x: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Examples and classes as the map computes with them; refused if they do not fit."""
        rows = checked_rows(x, self.prototypes)
        return rows, checked_classes(classes, len(rows), self.classes, rows.device)

    def far(self, rows: Tensor) -> Tensor:
        """How far checked examples are from all cells, [examples, cells]; to be compared within an example only."""
        with torch.autocast(rows.device.type, enabled=False):  # the product would be in half precision
            return (squared_distances if self.mode == "sequential" else remoteness)(rows, self.prototypes)

    @torch.no_grad()
    def winners(self, x: Tensor) -> Winners:
        """The nearest cell of each example, the first on ties."""
        rows = checked_rows(x, self.prototypes)
        return winners_of(first_nearest(self.far(rows)), rows, self.prototypes)

    @torch.no_grad()
    def nearest(self, x: Tensor, classes: Tensor) -> tuple[Winners, Winners]:
        """Winners and partial winners, from one matrix of distances."""
        rows, classes = self.checked(x, classes)
        far = self.far(rows)
        partial = last_nearest_labelled(far, self.labels, classes)
        return (
            winners_of(first_nearest(far), rows, self.prototypes),
            winners_of(partial, rows, self.prototypes),
        )

    @torch.no_grad()
    def partial_winners(self, x: Tensor, classes: Tensor) -> Winners:
        """The nearest among the cells labelled with the example's class, the last on ties; cell -1 if there is none."""
        rows, classes = self.checked(x, classes)
        return winners_of(last_nearest_labelled(self.far(rows), self.labels, classes), rows, self.prototypes)

    @torch.no_grad()
    def update(self, x: Tensor, radius: int, rate: float, winners: Winners | None = None) -> Winners:
        """Moves the winners and the cells within the radius around them towards the examples; returns the winners.

        Args:
            rate: of the winner; it halves with each step away from it.
            winners: of these examples on the map as it is, if they are known. The sequential way does not use them: there
                an example's winner depends on the examples before it.
        """
        check_step(radius, rate)
        rows = checked_rows(x, self.prototypes)
        return self.move(rows, radius, rate, winners)

    def move(self, rows: Tensor, radius: int, rate: float, winners: Winners | None = None) -> Winners:
        """As `update`, for examples that were checked before."""
        if self.mode == "sequential":
            return move_one_by_one(self.prototypes, self.steps.cpu().numpy(), rows, radius, rate)
        if winners is None:
            winners = winners_of(first_nearest(self.far(rows)), rows, self.prototypes)
        move_batch(self.prototypes, self.halves, rows, winners, radius, rate)
        return winners

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
        start: Literal["examples", "present"] = "examples",
        seed: int = 0,
    ) -> SOM:
        """Trains the map on the examples, in another order each epoch, then labels it if labels are given.

        Args:
            radius: (high, low), see `radius_at`.
            rate: (high, low), see `rate_at`.
            start: from examples drawn at random, or from the present prototypes.
            seed: of the start and the order.
        """
        return fit_map(self, x, labels, epochs, batch_size, radius, rate, start, seed)

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
        return quantisation_error(self, x)

    def topographic_error(self, x: Tensor) -> float:
        """Share of the examples whose two nearest cells are not neighbours."""
        return topographic_error(self, x)

    @torch.no_grad()
    def u_matrix(self) -> Tensor:
        """Mean Euclidean distance of each cell's prototype to those of its direct neighbours, [cells]."""
        return u_matrix(self.prototypes, self.steps)

    @torch.no_grad()
    def hits(self, x: Tensor) -> Tensor:
        """How many examples each cell wins, [cells]."""
        rows = checked_rows(x, self.prototypes)
        cells = [first_nearest(self.far(part)) for part in in_parts(rows)]
        return torch.bincount(torch.cat(cells), minlength=self.grid.cells)

    def keep(self, units: Tensor) -> None:
        """Keeps these columns of the prototypes, given as a mask or by number, and forgets the others."""
        kept = self.prototypes[:, units.to(self.prototypes.device)]
        if kept.shape[1] == 0:
            raise ModelError("map: it cannot be without columns; keep at least one unit")
        self.prototypes = kept.clone()

    def resize(self, features: int) -> None:
        """Makes room for prototypes of another width, before a state of that width is loaded; the present ones are lost."""
        if features < 1:
            raise ModelError(f"features: {features} is not a width; give a whole number of at least 1")
        self.prototypes = self.prototypes.new_zeros(self.grid.cells, features)
