"""A self-organising map whose cells carry class labels and reliabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from fairtune.core.errors import DataError, ModelError, nearest, one_of
from fairtune.core.grid import Grid, Topology
from fairtune.som.distances import (
    Winners,
    has_topographic_error,
    last_nearest_labelled,
    relative_squared_distances,
    squared_distances,
    winners_of,
)
from fairtune.som.labels import Labelling
from fairtune.som.moves import move_batch, move_one_by_one
from fairtune.som.schedules import radius_at, rate_at

UPDATES = ("batch", "sequential")
ROWS_AT_ONCE = 1024
"""How many examples a whole pass looks at together."""


class SOM(nn.Module):
    """A map of prototypes that can be trained alone, labelled and measured: buffers only, nothing of it is in an autograd graph.

    Cells are numbered as in `Grid`. A cell's label is -1 until a labelling pass gives it one.

    Args:
        grid: cells per side, or (columns, rows).
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
        return self.prototypes.shape[1]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Goes to a device or to float64 with its model, but keeps its precision where the model goes to half precision."""
        kept = {name: getattr(self, name) for name in ("prototypes", "reliability", "halves")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = getattr(self, name)
            if after.dtype.itemsize < 4:
                setattr(self, name, before.to(after.device))
        return self

    def checked(self, x: Tensor) -> Tensor:
        """The examples in the map's dtype and on its device, outside any graph; refused if they do not fit."""
        x = torch.as_tensor(x)
        if x.dim() != 2 or x.shape[1] != self.features:
            raise ModelError(f"map: examples of shape {list(x.shape)} do not fit; it takes [examples, {self.features}]")
        rows = x.detach().to(device=self.prototypes.device, dtype=self.prototypes.dtype)
        if not math.isfinite(float(rows.sum())):  # one number to look at; a sum of finite numbers may still overflow
            bad = (~torch.isfinite(rows)).any(1)
            if bool(bad.any()):
                raise DataError(
                    f"map: {int(bad.sum())} of {len(rows)} examples hold NaN or infinite numbers (the first is example "
                    f"{int(bad.nonzero()[0])}); the map was not changed. Look for a learning rate that is too high or a broken "
                    "input"
                )
        return rows

    def checked_classes(self, classes: Tensor, examples: int) -> Tensor:
        """The classes of so many examples as whole numbers on the map's device; refused if they do not fit."""
        classes = torch.as_tensor(classes)
        self._require_classes()
        if classes.shape != (examples,) or classes.is_floating_point() or classes.dtype == torch.bool:
            raise ModelError(
                f"map: classes are {classes.dtype} of shape {list(classes.shape)}; give one whole number from 0 to "
                f"{self.classes - 1} for each of the {examples} examples"
            )
        classes = classes.detach().to(device=self.prototypes.device, dtype=torch.int64)
        if examples:
            low, high = (int(end) for end in torch.stack(classes.aminmax()))
            if low < 0 or high >= self.classes:
                raise DataError(
                    f"map: class {low if low < 0 else high} is outside 0 to {self.classes - 1}; examples without a label (-1) "
                    "cannot be used"
                )
        return classes

    def distances_to_cells(self, rows: Tensor) -> Tensor:
        """How far checked examples are from all cells, [examples, cells]; to be compared within an example only."""
        measure = squared_distances if self.mode == "sequential" else relative_squared_distances
        with torch.autocast(rows.device.type, enabled=False):  # the product would be in half precision
            return measure(rows, self.prototypes)

    @torch.no_grad()
    def winners(self, x: Tensor) -> Winners:
        """The nearest cell of each example, the first on ties."""
        rows = self.checked(x)
        return winners_of(self.distances_to_cells(rows).argmin(1), rows, self.prototypes)

    @torch.no_grad()
    def nearest(self, x: Tensor, classes: Tensor) -> tuple[Winners, Winners]:
        """Winners and partial winners, from one matrix of distances.

        A partial winner is the nearest among the cells labelled with the example's class, the last on ties; -1 if there is none.
        """
        rows = self.checked(x)
        classes = self.checked_classes(classes, len(rows))
        distances = self.distances_to_cells(rows)
        partial = last_nearest_labelled(distances, self.labels, classes)
        return winners_of(distances.argmin(1), rows, self.prototypes), winners_of(partial, rows, self.prototypes)

    def partial_winners(self, x: Tensor, classes: Tensor) -> Winners:
        """The second of `nearest`."""
        return self.nearest(x, classes)[1]

    @torch.no_grad()
    def update(self, x: Tensor, radius: int, rate: float, winners: Winners | None = None) -> Winners:
        """Moves the winners and the cells within the radius around them towards the examples; returns the winners.

        Args:
            rate: of the winner; it halves with each step away from it.
            winners: of these examples on the map as it is, if they are known. The sequential way does not use them: there
                an example's winner depends on the examples before it.
        """
        _check_step(radius, rate)
        rows = self.checked(x)
        if self.mode == "sequential":
            return move_one_by_one(self.prototypes, self.steps.cpu().numpy(), rows, radius, rate)
        if winners is None:
            winners = winners_of(self.distances_to_cells(rows).argmin(1), rows, self.prototypes)
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
    ) -> Self:
        """Trains the map on the examples, in another order each epoch, then labels it if labels are given.

        Args:
            radius, rate: (high, low), see `fairtune.som.schedules`.
            start: from examples drawn at random, or from the present prototypes.
            seed: of the start and the order.
        """
        rows = self.checked(x)
        if labels is not None:
            labels = self.checked_classes(labels, len(rows))
        if len(rows) < self.grid.cells:
            raise DataError(
                f"grid: {self.grid.columns} x {self.grid.rows} has {self.grid.cells} cells for {len(rows)} examples; use a "
                "smaller grid or more examples"
            )
        if labels is not None and bool((labels == labels[0]).all()):
            raise DataError(f"map: all examples are of class {int(labels[0])}; labels need at least two classes")
        if start not in ("examples", "present"):
            raise ModelError(f"start: '{start}' is not known; allowed are examples and present")
        generator = torch.Generator().manual_seed(seed)
        if start == "examples":
            chosen = torch.randperm(len(rows), generator=generator)[: self.grid.cells]
            self.prototypes.copy_(rows[chosen.to(rows.device)])
        for epoch in range(1, epochs + 1):
            left = (epochs - epoch) / epochs
            order = torch.randperm(len(rows), generator=generator).to(rows.device)
            for batch in torch.split(rows[order], batch_size):
                self.update(batch, radius_at(left, radius), rate_at(left, rate))
        if labels is not None:
            self.label(rows, labels)
        return self

    def keep(self, units: Tensor) -> None:
        """Keeps these columns of the prototypes, given as a mask or by number, and forgets the others."""
        kept = self.prototypes[:, units.to(self.prototypes.device)]
        if kept.shape[1] == 0:
            raise ModelError("map: it cannot be without columns; keep at least one unit")
        self.prototypes = kept.clone()

    def resize(self, features: int) -> None:
        """Makes room for prototypes of another width, before a state of that width is loaded; the present ones are lost."""
        self.prototypes = self.prototypes.new_zeros(self.grid.cells, features)

    def labelling(self) -> Labelling:
        """A labelling pass to feed batch by batch."""
        self._require_classes()
        return Labelling(self)

    def label(self, x: Tensor, classes: Tensor) -> Labelling:
        """A whole labelling pass over these examples."""
        rows = self.checked(x)
        classes = self.checked_classes(classes, len(rows))
        labelling = self.labelling()
        for part, of_part in zip(torch.split(rows, ROWS_AT_ONCE), torch.split(classes, ROWS_AT_ONCE), strict=True):
            labelling.add(part, of_part)
        return labelling.finish()

    def quantisation_error(self, x: Tensor) -> float:
        """Mean Euclidean distance of an example to its winner."""
        return sum(float(self.winners(part).distances.double().sqrt().sum()) for part in self._parts(x)) / len(x)

    @torch.no_grad()
    def topographic_error(self, x: Tensor) -> float:
        """Share of the examples whose two nearest cells are not neighbours."""
        parts = (has_topographic_error(self.distances_to_cells(part), self.steps) for part in self._parts(x))
        return sum(int(part.sum()) for part in parts) / len(x)

    @torch.no_grad()
    def u_matrix(self) -> Tensor:
        """Mean Euclidean distance of each cell's prototype to those of its direct neighbours, [cells]."""
        touching = self.steps == 1
        one, other = touching.nonzero(as_tuple=True)
        away = (self.prototypes[one] - self.prototypes[other]).square().sum(1).sqrt()
        return self.prototypes.new_zeros(self.grid.cells).index_add_(0, one, away) / touching.sum(1).clamp(min=1)

    @torch.no_grad()
    def hits(self, x: Tensor) -> Tensor:
        """How many examples each cell wins, [cells]."""
        cells = [self.distances_to_cells(part).argmin(1) for part in torch.split(self.checked(x), ROWS_AT_ONCE)]
        return torch.bincount(torch.cat(cells), minlength=self.grid.cells)

    def _parts(self, x: Tensor) -> Iterator[Tensor]:
        """Checked examples, of which there is at least one, in parts that are looked at together."""
        rows = self.checked(x)
        if not len(rows):
            raise DataError("map: a mean over no examples says nothing; give at least one")
        yield from torch.split(rows, ROWS_AT_ONCE)

    def _require_classes(self) -> None:
        if self.classes == 0:
            raise ModelError(
                "map: it was made without classes, so its cells have no labels; make it with SOM(..., classes=n)"
            )


def _check_step(radius: int, rate: float) -> None:
    if radius < 0 or radius != int(radius):
        raise ModelError(f"radius: {radius} is not a number of steps; give a whole number of at least 0")
    if not 0 <= rate <= 1:
        raise ModelError(f"rate: {rate} is outside 0 to 1; beyond 1 a cell would overshoot its example")
